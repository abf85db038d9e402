"""Accounts of callers: who is there, who has most, and whose short jobs have not been short lately."""

from __future__ import annotations

import pytest

from service.workers.admission import OWN, Account, Accounts
from service.workers.task import Task

NOW = 1000.0


def job() -> Task:
    return Task("forward", b"", "id", 1.0, 0.0)


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


def test_a_caller_has_one_account(accounts: Accounts) -> None:
    first = accounts.enter("a", NOW)
    assert accounts.enter("a", NOW + 0.5) is first
    assert (first.tenant, first.used, first.present, accounts.present) == ("a", NOW + 0.5, True, 1)
    assert accounts.enter("b", NOW) is not first


def test_one_alone_takes_no_turns(accounts: Accounts) -> None:
    assert not accounts.contended
    accounts.enter("a", NOW)
    assert not accounts.contended
    accounts.enter("b", NOW)
    assert accounts.contended


def test_nobody_takes_turns_with_the_server(accounts: Accounts) -> None:
    """Or one that is asked whether it is ready, once a second, would never be one caller's alone."""
    accounts.enter("a", NOW)
    own = accounts.enter(OWN, NOW)
    assert (accounts.contended, accounts.present, own.present) == (False, 1, False)
    accounts.look(NOW + 100)
    assert accounts.present == 0


def test_who_has_had_no_job_for_a_second_is_not_there(accounts: Accounts) -> None:
    a, b = accounts.enter("a", NOW), accounts.enter("b", NOW + 0.5)
    accounts.look(NOW + 1.0)
    assert accounts.present == 2, "a second is not more than a second"
    accounts.look(NOW + 1.1)
    assert (a.present, b.present, accounts.present) == (False, True, 1)
    accounts.look(NOW + 1.2)
    assert accounts.present == 1, "it is counted out once"
    assert accounts.enter("a", NOW + 1.3) is a
    assert accounts.contended


def test_who_waits_for_a_job_is_there_however_long_it_takes(accounts: Accounts) -> None:
    account = accounts.enter("a", NOW)
    account.tasks[waited := job()] = None
    accounts.look(NOW + 1000)
    assert account.present
    del account.tasks[waited]
    accounts.look(NOW + 1000)
    assert not account.present


def test_nothing_is_known_of_who_was_last_there_a_minute_ago(accounts: Accounts) -> None:
    account = accounts.enter("a", NOW)
    accounts.look(NOW + 60.0)
    assert accounts.enter("a", NOW) is account
    accounts.look(NOW + 60.1)
    assert accounts.enter("a", NOW + 61) is not account
    assert accounts.present == 1


def test_who_has_most_jobs_is_found(accounts: Accounts) -> None:
    for name, count in (("a", 1), ("b", 3), ("c", 2)):
        accounts.enter(name, NOW).tasks |= {job(): None for _ in range(count)}
    assert accounts.greatest().tenant == "b"


def test_jobs_are_kept_in_the_order_in_which_they_came() -> None:
    account, came = Account("a"), [job() for _ in range(5)]
    account.tasks |= dict.fromkeys(came)
    assert [*account.tasks] == came


def test_a_caller_is_doubtful_from_a_tenth_of_a_second_too_much() -> None:
    account = Account("a")
    assert not account.is_doubtful(NOW)
    account.overran(0.1, NOW)
    assert not account.is_doubtful(NOW), "this much is borne"
    account.overran(0.01, NOW)
    assert account.is_doubtful(NOW)


def test_what_was_too_much_is_forgiven_with_time() -> None:
    """A twentieth of a second in a second."""
    account = Account("a")
    account.overran(0.15, NOW)
    assert account.is_doubtful(NOW + 0.9)
    assert not account.is_doubtful(NOW + 1.1)
    account.overran(0.03, NOW + 1.0)
    assert not account.is_doubtful(NOW + 2.0)
    account.overran(0.1, NOW + 2.0)
    assert account.is_doubtful(NOW + 2.5), "what was left is added to"


def test_no_grudge_is_held_for_longer_than_two_seconds() -> None:
    """Whatever was too much, not more than twice what is borne is remembered."""
    account = Account("a")
    account.overran(1000.0, NOW)
    assert account.is_doubtful(NOW + 1.9)
    assert not account.is_doubtful(NOW + 2.1)


def test_what_is_forgiven_is_not_saved_up() -> None:
    account = Account("a")
    account.overran(0.05, NOW)
    account.overran(0.11, NOW + 500)
    assert account.is_doubtful(NOW + 500)
