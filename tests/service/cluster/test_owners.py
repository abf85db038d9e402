"""Ownership of shards on virtual time: claim, forwarding, takeover, pause, release, and migration."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from service.cluster.shared_store import WINDOW
from service.store import promises
from service.store.ownership import OPENING_INTERVAL
from tests.simulation.checker import Operation
from tests.simulation.member import Member
from tests.simulation.server import OK, Request
from tests.simulation.store import Store
from tests.simulation.virtual import World

#: seconds of a lease, and seconds that a successor waits
LEASE = 1.0
WAIT = 1.2 * LEASE


class Trial:
    """Servers at one place on virtual time."""

    def __init__(self, count: int = 3, lease: float = LEASE) -> None:
        self.lease = lease
        self.world = World(7)
        self.store = Store(self.world, 0.0)
        self.peers: dict[str, Member] = {}
        self.members = [self.begin(number) for number in range(count)]

    def begin(self, number: int) -> Member:
        return Member(self.world, self.store, self.lease, f"server {number}", self.peers)

    def ask(self, member: Member, operation: Operation, seconds: float = 20.0) -> tuple[object, float]:
        """Send a request, and return the answer and the seconds that it took."""
        answers: list[tuple[object, float]] = []
        began = self.world.now
        request = Request(operation, None, seconds)
        self.world.at(
            began, lambda: member.ask(request, lambda answer: answers.append((answer, self.world.now - began)))
        )
        while not answers:
            assert self.world.now < began + 2 * seconds
            self.wait(0.01)
        return answers[0]

    def wait(self, seconds: float) -> None:
        """Advance the time."""
        end = self.world.now + seconds
        self.world.run(end)
        self.world.now = end

    def read(self, member: Member) -> tuple[object, float]:
        (answer, seconds) = self.ask(member, Operation("read", 0.0, ("x",)))
        return answer, seconds

    def write(self, member: Member, value: int) -> tuple[object, float]:
        answer, seconds = self.ask(member, Operation("write", 0.0, (), {"x": value}))
        return "ok" if str(answer).startswith(OK) else answer, seconds

    def owner(self) -> list[int]:
        """List the servers that believe to own the shard."""
        return [number for number, member in enumerate(self.members) if list(member.owners.owned_shards)]


#: seconds of a long promise: a message takes up to 20 ms
PROMISED = 1.0


@pytest.fixture
def long_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "PROMISED", PROMISED)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_first_server_asked_becomes_the_owner() -> None:
    trial = Trial()
    first, second, third = trial.members
    answer, seconds = trial.write(second, 1)
    assert (answer, trial.owner()) == ("ok", [1])
    assert seconds < LEASE, "nobody was there before"
    assert [trial.read(member)[0] for member in (first, third, second)] == [(1,)] * 3
    assert trial.write(first, 2)[0] == "ok"
    assert (trial.read(third)[0], trial.owner()) == ((2,), [1])
    assert first.store.forwarded == {"versions": 1, "proposal": 1}


def test_dead_owner_is_replaced() -> None:
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 1)
    trial.wait(OPENING_INTERVAL)
    first.kill()
    answer, seconds = trial.read(second)
    assert answer == (1,)
    assert WAIT < seconds < WAIT + 1, "the leases of the one before are waited for"
    assert second.owners.takeovers == 1
    trial.members[0] = back = trial.begin(0)
    assert trial.read(back)[0] == (1,)
    assert trial.owner() == [1]


def test_openings_have_a_minimum_interval() -> None:
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 1)
    first.kill()
    answer, seconds = trial.read(second)
    assert answer == (1,)
    assert OPENING_INTERVAL < seconds + 1 < OPENING_INTERVAL + WAIT + 2


def test_one_of_several_concurrent_requests_makes_the_opening() -> None:
    """The others ask that one, even if the previous owner has released the shard."""
    trial = Trial()
    first, *others = trial.members
    trial.write(first, 1)
    first.release()
    trial.wait(1.0)
    before = len(trial.store.opened)
    answers: list[object] = []
    for member in others:
        request = Request(Operation("read", 0.0, ("x",)), None, 20.0)
        trial.world.at(trial.world.now, lambda member=member, request=request: member.ask(request, answers.append))
    trial.wait(WAIT)
    assert answers == [(1,), (1,)]
    assert len(trial.owner()) == 1
    assert len(trial.store.opened) == before + 1


def test_paused_owner_does_not_answer_from_its_old_state() -> None:
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 1)
    trial.wait(OPENING_INTERVAL)
    first.process.paused = trial.world.now + 10
    assert trial.write(second, 2)[0] == "unconfirmed", "it may have reached the one that is paused"
    assert trial.write(second, 3)[0] == "ok"
    assert trial.world.now < first.process.paused
    trial.wait(10)
    assert trial.read(first)[0] == (3,)
    assert trial.owner() == [1]


def test_stopping_owner_releases_its_shard() -> None:
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 1)
    first.release()
    answer, seconds = trial.read(second)
    assert answer == (1,)
    assert seconds < LEASE, "it has said that it answers no more"
    assert (trial.owner(), second.owners.takeovers) == ([1], 0)


def test_shard_moves_once_to_the_server_that_is_asked() -> None:
    trial = Trial()
    first, second, third = trial.members
    trial.write(first, 1)
    while trial.world.now < 6 * WINDOW and trial.owner() == [0]:
        assert trial.read(second)[0] == (1,)
    # The last owner does not take it back, nor does another server, before the successor opens it.
    assert [trial.read(member)[0] for member in (first, third, second)] == [(1,)] * 3
    assert trial.owner() == [1]
    assert [dict(member.owners.owned_shards.moves) for member in trial.members] == [{"free": 1}, {"handed_over": 1}, {}]


def test_caller_that_alternates_moves_no_shard() -> None:
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 1)
    while trial.world.now < 12 * WINDOW:
        assert [trial.read(member)[0] for member in (first, second)] == [(1,)] * 2
    assert trial.owner() == [0]


def test_successor_that_is_dead_is_replaced() -> None:
    trial = Trial()
    first, second, third = trial.members
    trial.write(first, 1)
    second.kill()
    first.hand_over(second.address)
    trial.wait(0.1)
    answer, seconds = trial.read(third)
    assert answer == (1,)
    assert OPENING_INTERVAL - 1 < seconds < OPENING_INTERVAL + 1


@pytest.mark.parametrize("idle", [False, True])
def test_blind_owner_is_replaced_by_whoever_asks(idle: bool) -> None:
    """Only its way to the store is cut: it answers that it cannot answer."""
    trial = Trial()
    first, second, third = trial.members
    trial.write(first, 1)
    trial.wait(OPENING_INTERVAL + (60 if idle else 0))
    first.process.blind, began = True, trial.world.now
    answers = []
    while (answer := trial.write(second, 2)[0]) != "ok":
        answers.append(answer)
    assert trial.world.now - began < 6.0
    assert set(answers) <= {"unconfirmed", "not_ready"}
    assert (trial.read(third)[0], trial.owner()[-1]) == ((2,), 1)
    assert trial.read(first)[0] == (2,), "it forwards, like any other server"
    assert dict(second.owners.owned_shards.moves) == {"without_store": 1}
    trial.wait(5.0)
    first.process.blind = False
    trial.wait(5.0)
    assert trial.read(first)[0] == (2,)
    assert trial.owner() == [1]


def test_blind_owner_asks_to_be_replaced() -> None:
    """All clients send to it: it asks another server to take over, and forwards to that one."""
    trial = Trial()
    first, second, third = trial.members
    trial.write(first, 1)
    trial.wait(OPENING_INTERVAL)
    first.process.blind, began = True, trial.world.now
    answers = []
    while (answer := trial.write(first, 2)[0]) != "ok":
        answers.append(answer)
    assert trial.world.now - began < 6.0
    assert set(answers) <= {"unconfirmed", "not_ready"}
    assert trial.owner() == [1]
    assert [trial.read(member)[0] for member in (first, second, third)] == [(2,)] * 3
    first.process.blind = False
    trial.wait(5.0)
    assert trial.write(first, 3)[0] == "ok"
    assert trial.owner() == [1]
    assert dict(second.owners.owned_shards.moves) == {"without_store": 1}


def test_outage_for_all_moves_no_shard() -> None:
    trial = Trial()
    first, second, third = trial.members
    trial.write(first, 1)
    trial.wait(OPENING_INTERVAL)
    for member in trial.members:
        member.process.blind = True
    trial.world.at(trial.world.now + 20.0, lambda: [setattr(m.process, "blind", False) for m in trial.members])
    end = trial.world.now + 25.0
    while trial.world.now < end:
        for member in (first, second, third):
            trial.read(member)
    assert [trial.read(member)[0] for member in (first, second, third)] == [(1,)] * 3
    assert trial.owner() == [0]


@pytest.mark.usefixtures("long_promises")
def test_reads_through_another_server_need_no_question_while_they_are_promised() -> None:
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 2)
    trial.read(second)
    asked = second.store.forwarded["versions"]
    for _ in range(20):
        assert trial.read(second)[0] == (2,)
    assert second.store.forwarded["versions"] == asked
    assert trial.write(first, 4)[0] == "ok"
    assert trial.read(second)[0] == (4,)


@pytest.mark.usefixtures("long_promises")
def test_write_is_answered_when_promises_are_over() -> None:
    """None is made while it waits, so that readers cannot put it off."""
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 2)
    answers: list[tuple[float, object]] = []
    reading = Request(Operation("read", 0.0, ("x",)), None, 20.0)
    for number in range(300):
        at = trial.world.now + 0.01 * number
        trial.world.at(at, lambda at=at: second.ask(reading, lambda answer: answers.append((at, answer))))
    trial.wait(0.5)
    answer, seconds = trial.write(first, 4)
    assert answer == "ok"
    assert seconds < 1.2 * PROMISED + 0.1
    written = trial.world.now
    trial.wait(3.0)
    assert {value for at, value in answers if at < written - seconds} == {(2,)}
    assert {value for at, value in answers if at > written} == {(4,)}
    assert second.store.forwarded["versions"] < 100


@pytest.mark.usefixtures("long_promises")
@pytest.mark.parametrize("how", ["hand over", "release"])
def test_shard_is_released_when_promises_are_over(how: str) -> None:
    trial = Trial(lease=3.0)
    first, second, third = trial.members
    trial.write(first, 2)
    assert trial.read(second)[0] == (2,)
    first.hand_over(third.address) if how == "hand over" else first.release()
    while (answer := trial.write(third, 4)[0]) != "ok":
        assert answer == "shutting_down"
    assert trial.read(second)[0] == (4,)


def test_equal_questions_that_wait_share_a_message() -> None:
    """The one under way may be older than a request that comes meanwhile, so that one is not shared."""
    trial = Trial()
    first, second, _ = trial.members
    trial.write(first, 1)
    trial.read(second)
    trial.wait(PROMISED)
    before = second.store.forwarded["versions"]
    answers: list[object] = []
    for _ in range(10):
        trial.world.at(
            trial.world.now, lambda: second.ask(Request(Operation("read", 0.0, ("x",)), None, 20.0), answers.append)
        )
        trial.wait(0.0001)
    trial.wait(1.0)
    assert answers == [(1,)] * 10
    assert second.store.forwarded["versions"] - before == 2
