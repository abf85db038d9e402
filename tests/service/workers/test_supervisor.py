"""The supervisor keeps all places taken: who comes takes the one missed most, and who goes is replaced, in time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest

from engine.runtime.crash_record import LastWords
from service.core import machine
from service.core.settings import Settings
from service.workers import frames
from service.workers.confinement import CONFINED_TO
from service.workers.sandbox import SHARE
from service.workers.shared_memory import Vitals
from service.workers.supervisor import Supervisor
from service.workers.worker_process import Receiver
from tests.service.workers.pools import running
from tests.service.workers.puppets import Puppet, puppets

__all__ = ["puppets"]
PLAN = "ab" * 32
PATIENCE = 30.0


class Heard:
    """Whoever gives the workers jobs: what it was told, whatever that is called."""

    residents: dict[tuple[str, str], Any] = {}  # noqa: RUF012 - nothing is ever in it

    def __init__(self) -> None:
        self.lost_jobs: list[tuple[Any, Any]] = []
        self.told = 0

    def lost(self, tickets: Any, executing: Any) -> None:
        self.lost_jobs.append((tickets, executing))

    def __getattr__(self, name: str) -> Callable[..., None]:
        def hear(*_: Any) -> None:
            self.told += 1

        return hear


class Later:
    """What a loop is to do later, and after how many seconds; it does so when the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        loop = asyncio.get_running_loop()
        asked = loop.call_later

        def call_later(delay: float, what: Callable[..., None], *stated: Any) -> asyncio.TimerHandle:
            self.waiting.append((delay, lambda: what(*stated)))
            return asked(1e6, lambda: None)

        monkeypatch.setattr(loop, "call_later", call_later)

    def do(self) -> list[float]:
        """All of it, and what was waited for."""
        waiting, self.waiting = self.waiting, []
        for _, what in waiting:
            what()
        return [delay for delay, _ in waiting]


def settings(workers: int = 2, **stated: Any) -> Settings:
    return Settings(**{"device": "cpu", "workers": workers, "confine": "off", "cache_dir": None, **stated})


async def started(puppets: list[Puppet], device: str = "cpu", **stated: Any) -> tuple[Supervisor, Heard]:
    """One of which a worker of each kind is ready: on processors a quick and a general one, on cards one."""
    heard = Heard()
    wanted = "cpu" if device == "cpu" else "auto"
    supervisor = Supervisor(settings(device=wanted, **stated), cast("Receiver", heard), ["worker"])
    starting = asyncio.create_task(supervisor.start())
    await asyncio.sleep(0)
    for puppet in puppets[: 2 if device == "cpu" else 1]:
        puppet.come(device)
    assert await asyncio.wait_for(starting, PATIENCE) == device
    return supervisor, heard


async def whole(puppets: list[Puppet], **stated: Any) -> tuple[Supervisor, Heard]:
    """One whose workers are all ready: quick, two general ones, and the spare."""
    found = await started(puppets, **stated)
    for each in (2, 3):
        puppets[each].come()
    return found


def places(supervisor: Supervisor, puppets: list[Puppet]) -> tuple[int | None, list[int], int | None]:
    """The numbers of quick, general and spare workers, in the order of their starts."""
    number: dict[Any, int] = {puppet: i for i, puppet in enumerate(puppets)}
    quick, spare = (None if each is None else number[each] for each in (supervisor.quick, supervisor.spare))
    return quick, [number[each] for each in supervisor.general], spare


@running
async def test_start_waits_for_a_worker_of_each_kind(puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that only general workers take would wait for the start of one, after a 200 of /health/ready."""
    supervisor = Supervisor(settings(), cast("Receiver", Heard()), ["worker"])
    starting = asyncio.create_task(supervisor.start())
    await asyncio.sleep(0)
    assert len(puppets) == 2
    later = Later(monkeypatch)
    puppets[0].come()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not starting.done(), "there is no general worker yet"
    puppets[1].end()
    later.do()
    puppets[2].come()
    assert await asyncio.wait_for(starting, PATIENCE) == "cpu"
    assert places(supervisor, puppets) == (0, [2], None)


@running
async def test_workers_are_started_one_by_one_and_take_the_place_that_is_missed_most(puppets: list[Puppet]) -> None:
    supervisor, heard = await started(puppets)
    for count in (2, 3):
        assert supervisor.ready == heard.told == count
        assert len(puppets) == count + 1
        puppets[count].come()
    assert places(supervisor, puppets) == (0, [1, 2], 3)
    assert len(puppets) == len([*supervisor]) == 4
    assert supervisor.count() == {"quick": 1, "spare": 1, "long": 2}
    assert [puppet.steps_back for puppet in puppets] == [0, 1, 1, 0], "long jobs have time"
    assert [*map(puppets.index, supervisor.working)] == [0, 1, 2]


@running
async def test_each_is_told_its_share_of_the_settings_and_no_secret(puppets: list[Puppet]) -> None:
    await started(puppets, plan_cache_bytes=4096, api_key="k" * 30)
    told = orjson.loads(puppets[0].settings)
    assert told["plan_cache_bytes"] == 4096 // 4
    assert "api_key" not in told
    assert puppets[0].command == ["worker"]


@pytest.mark.parametrize("confine", ["on", "off"])
@running
async def test_the_environment_says_what_is_permitted_and_how_much_memory_is_its_own(
    puppets: list[Puppet], confine: str
) -> None:
    supervisor, _ = await started(puppets, confine=confine)
    for puppet in puppets:
        assert int(puppet.environment[SHARE]) > 0
        assert (CONFINED_TO in puppet.environment) == (confine == "on")
    assert len([*supervisor]) == 3


@running
async def test_on_cards_the_first_worker_is_one_of_those_that_do_all(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: ("0", "2"))
    supervisor, _ = await started(puppets, "cuda:0")
    puppets[1].come("cuda:0")
    assert places(supervisor, puppets) == (None, [0, 1], None)
    assert len(puppets) == 2
    assert puppets[1].steps_back == 0, "it does what is short, too"
    assert puppets[1].environment["CUDA_VISIBLE_DEVICES"] == "2"


@running
async def test_whoever_replaces_another_has_its_card(puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: ("0", "2"))
    later = Later(monkeypatch)
    supervisor, _ = await started(puppets, "cuda:0")
    puppets[1].come("cuda:0")
    puppets[0].end()
    later.do()
    assert puppets[2].environment["CUDA_VISIBLE_DEVICES"] == "0"
    puppets[1].obeys = False
    supervisor.retire(puppets[1], "age")
    puppets[2].come("cuda:0")
    assert puppets[3].environment["CUDA_VISIBLE_DEVICES"] == "2", "though that one has not ended yet"


@running
async def test_where_the_first_worker_fails_the_start_does(puppets: list[Puppet]) -> None:
    starting = asyncio.create_task(Supervisor(settings(), cast("Receiver", Heard()), ["worker"]).start())
    await asyncio.sleep(0)
    puppets[0].failure = "there is no such device"
    puppets[0].end()
    with pytest.raises(RuntimeError, match="there is no such device"):
        await starting
    assert len(puppets) == 2


@running
async def test_workers_that_end_before_they_are_ready_are_replaced_ever_more_seldom(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(puppets)
    later, pauses = Later(monkeypatch), []
    for _ in range(12):
        puppets[-1].end()
        pauses += later.do()
    most = max(pauses)
    assert pauses == [min(most, pauses[0] * 2**i) for i in range(12)]
    assert (pauses[1], pauses[-2]) == (2 * pauses[0], most)
    puppets[-1].come()
    puppets[-1].end()
    assert later.do() == pauses[:1], "from the beginning, once one has come"


@running
async def test_the_spare_takes_the_place_of_whoever_ends_and_another_is_started_after_a_breath(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, heard = await whole(puppets)
    later, job = Later(monkeypatch), object()
    puppets[0].tickets, puppets[0].executing = [job, job], job
    puppets[0].page.vitals = Vitals(5, 0)
    puppets[0].end()
    assert places(supervisor, puppets) == (3, [1, 2], None)
    assert heard.lost_jobs == [([job, job], job)]
    assert (supervisor.ends, supervisor.kernels) == ({"died": 1}, 5)
    assert len(puppets) == 4
    (breath,) = later.do()
    assert breath > 0
    puppets[4].come()
    assert places(supervisor, puppets) == (3, [1, 2], 4)


@running
async def test_where_nobody_is_left_nobody_waits_for_a_breath(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(puppets)
    Later(monkeypatch)
    puppets[2].end()
    puppets[1].end()
    assert len(puppets) == 3
    puppets[0].end()
    assert len(puppets) == 4


@running
async def test_where_most_are_missing_two_are_started_at_once(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    await whole(puppets)
    later = Later(monkeypatch)
    for puppet in puppets[:3]:
        puppet.end()
    later.do()
    assert len(puppets) == 6
    puppets[4].come()
    assert len(puppets) == 7, "half are there, one is starting"


@running
async def test_a_worker_that_is_held_up_changes_places_with_one_that_is_not(puppets: list[Puppet]) -> None:
    supervisor, _ = await whole(puppets)
    assert supervisor.relieve()
    assert places(supervisor, puppets) == (3, [1, 2, 0], None)
    assert supervisor.long_workers == 3
    puppets[1].tickets = [object()]
    assert supervisor.relieve()
    assert places(supervisor, puppets) == (2, [1, 0, 3], None), "without a spare, with one that has nothing to do"
    for puppet in puppets:
        puppet.tickets = [object()]
    assert not supervisor.relieve()
    assert len(puppets) == 4


@running
async def test_one_that_is_free_becomes_the_spare_again(puppets: list[Puppet]) -> None:
    supervisor, _ = await whole(puppets)
    supervisor.relieve()
    for puppet in puppets:
        puppet.long = object()
    supervisor.trim()
    assert places(supervisor, puppets) == (3, [1, 2, 0], None), "all have long jobs"
    puppets[1].long = None
    supervisor.trim()
    supervisor.trim()
    assert places(supervisor, puppets) == (3, [2, 0], 1)


@running
async def test_who_retires_does_what_it_has_and_is_replaced_at_once(puppets: list[Puppet]) -> None:
    supervisor, heard = await whole(puppets)
    puppets[1].obeys = False
    supervisor.retire(puppets[1], "age")
    assert places(supervisor, puppets) == (0, [2, 3], None)
    assert (puppets[1].reason, puppets[1].finished, len(puppets)) == ("age", True, 5)
    puppets[1].end()
    assert supervisor.ends == {"age": 1}
    assert heard.lost_jobs == [([], None)]


@running
async def test_who_is_dismissed_ends_by_itself(puppets: list[Puppet]) -> None:
    supervisor, _ = await whole(puppets)
    supervisor.dismiss(puppets[0], "memory")
    assert places(supervisor, puppets) == (3, [1, 2], None)
    assert (puppets[0].reason, puppets[0].finished, len(puppets)) == ("memory", False, 4)


@running
async def test_of_a_plan_that_has_ended_two_workers_all_are_told_also_those_who_come_later(
    puppets: list[Puppet],
) -> None:
    supervisor, _ = await started(puppets)
    for _ in range(2):
        assert puppets[0].frames == []
        supervisor.signalled(puppets[0], signal.SIGSEGV, LastWords(PLAN, "", "sum"))
    condemned = [frames.text(frames.CONDEMNED, PLAN)]
    assert [puppet.frames for puppet in puppets] == [condemned, condemned, []], "the last one is not ready"
    puppets[2].come()
    assert puppets[2].frames == condemned
    assert supervisor.incidents.counts == {"SIGSEGV": 2}


@pytest.mark.parametrize("obeys", [True, False])
@running
async def test_at_the_end_all_are_let_finish_and_who_does_not_is_killed(puppets: list[Puppet], obeys: bool) -> None:
    supervisor, heard = await whole(puppets)
    puppets[2].obeys = obeys
    await supervisor.close(0.0)
    assert [puppet.finished for puppet in puppets] == [True] * 4
    assert [puppet.killed for puppet in puppets] == [False, False, not obeys, False]
    supervisor.signalled(puppets[2], signal.SIGSEGV, LastWords(PLAN, "", ""))
    assert (len(puppets), heard.lost_jobs, supervisor.ends) == (4, [], {})
    assert not supervisor.incidents.counts
