"""Accounts of callers: their presence, their number of jobs, and recent overruns of short jobs."""

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


def test_caller_has_one_account(accounts: Accounts) -> None:
    first = accounts.enter("a", NOW)
    assert accounts.enter("a", NOW + 0.5) is first
    assert (first.tenant, first.used, first.present, accounts.present) == ("a", NOW + 0.5, True, 1)
    assert accounts.enter("b", NOW) is not first


def test_single_caller_is_not_contended(accounts: Accounts) -> None:
    assert not accounts.contended
    accounts.enter("a", NOW)
    assert not accounts.contended
    accounts.enter("b", NOW)
    assert accounts.contended


def test_server_account_does_not_count_as_a_caller(accounts: Accounts) -> None:
    """Otherwise a server with a readiness probe once a second would always be contended."""
    accounts.enter("a", NOW)
    own = accounts.enter(OWN, NOW)
    assert (accounts.contended, accounts.present, own.present) == (False, 1, False)
    accounts.look(NOW + 100)
    assert accounts.present == 0


def test_caller_is_absent_after_a_second_without_jobs(accounts: Accounts) -> None:
    a, b = accounts.enter("a", NOW), accounts.enter("b", NOW + 0.5)
    accounts.look(NOW + 1.0)
    assert accounts.present == 2, "a second is not more than a second"
    accounts.look(NOW + 1.1)
    assert (a.present, b.present, accounts.present) == (False, True, 1)
    accounts.look(NOW + 1.2)
    assert accounts.present == 1, "it is counted out once"
    assert accounts.enter("a", NOW + 1.3) is a
    assert accounts.contended


def test_caller_with_a_pending_job_stays_present(accounts: Accounts) -> None:
    account = accounts.enter("a", NOW)
    account.tasks[pending := job()] = None
    accounts.look(NOW + 1000)
    assert account.present
    del account.tasks[pending]
    accounts.look(NOW + 1000)
    assert not account.present


def test_account_is_dropped_after_a_minute(accounts: Accounts) -> None:
    account = accounts.enter("a", NOW)
    accounts.look(NOW + 60.0)
    assert accounts.enter("a", NOW) is account
    accounts.look(NOW + 60.1)
    assert accounts.enter("a", NOW + 61) is not account
    assert accounts.present == 1


def test_greatest_is_the_caller_with_most_jobs(accounts: Accounts) -> None:
    for name, count in (("a", 1), ("b", 3), ("c", 2)):
        accounts.enter(name, NOW).tasks |= {job(): None for _ in range(count)}
    assert accounts.greatest().tenant == "b"


def test_tasks_stay_in_order_of_arrival() -> None:
    account, arrived = Account("a"), [job() for _ in range(5)]
    account.tasks |= dict.fromkeys(arrived)
    assert [*account.tasks] == arrived


def test_caller_is_doubtful_after_a_tenth_second_of_overrun() -> None:
    account = Account("a")
    assert not account.is_doubtful(NOW)
    account.overran(0.1, NOW)
    assert not account.is_doubtful(NOW), "this much is borne"
    account.overran(0.01, NOW)
    assert account.is_doubtful(NOW)


def test_overrun_decays_with_time() -> None:
    """It decays by a twentieth of a second per second."""
    account = Account("a")
    account.overran(0.15, NOW)
    assert account.is_doubtful(NOW + 0.9)
    assert not account.is_doubtful(NOW + 1.1)
    account.overran(0.03, NOW + 1.0)
    assert not account.is_doubtful(NOW + 2.0)
    account.overran(0.1, NOW + 2.0)
    assert account.is_doubtful(NOW + 2.5), "what was left is added to"


def test_overrun_is_remembered_for_at_most_two_seconds() -> None:
    """At most twice the tolerated overrun is remembered."""
    account = Account("a")
    account.overran(1000.0, NOW)
    assert account.is_doubtful(NOW + 1.9)
    assert not account.is_doubtful(NOW + 2.1)


def test_decay_does_not_accumulate_as_credit() -> None:
    account = Account("a")
    account.overran(0.05, NOW)
    account.overran(0.11, NOW + 500)
    assert account.is_doubtful(NOW + 500)
