"""The supervisor fills all places: new workers take the most needed one, and workers that exit are replaced."""

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
TIMEOUT = 30.0


class RecordingReceiver:
    """A receiver that counts its calls and records lost jobs."""

    residents: dict[tuple[str, str], Any] = {}  # noqa: RUF012 - nothing is ever in it

    def __init__(self) -> None:
        self.lost_jobs: list[tuple[Any, Any]] = []
        self.calls = 0

    def lost(self, tickets: Any, executing: Any) -> None:
        self.lost_jobs.append((tickets, executing))

    def __getattr__(self, name: str) -> Callable[..., None]:
        def count_call(*_: Any) -> None:
            self.calls += 1

        return count_call


class DelayedCalls:
    """Delayed callbacks of the event loop, which run when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        loop = asyncio.get_running_loop()
        original = loop.call_later

        def call_later(delay: float, callback: Callable[..., None], *arguments: Any) -> asyncio.TimerHandle:
            self.waiting.append((delay, lambda: callback(*arguments)))
            return original(1e6, lambda: None)

        monkeypatch.setattr(loop, "call_later", call_later)

    def run_all(self) -> list[float]:
        """Run all callbacks; return their delays."""
        waiting, self.waiting = self.waiting, []
        for _, callback in waiting:
            callback()
        return [delay for delay, _ in waiting]


def settings(workers: int = 2, **stated: Any) -> Settings:
    return Settings(**{"device": "cpu", "workers": workers, "confine": "off", "cache_dir": None, **stated})


async def start_supervisor(
    puppets: list[Puppet], device: str = "cpu", **stated: Any
) -> tuple[Supervisor, RecordingReceiver]:
    """A supervisor with a ready worker of each kind: a quick and a general one on processors, one on GPUs."""
    receiver = RecordingReceiver()
    setting = "cpu" if device == "cpu" else "auto"
    supervisor = Supervisor(settings(device=setting, **stated), cast("Receiver", receiver), ["worker"])
    starting = asyncio.create_task(supervisor.start())
    await asyncio.sleep(0)
    for puppet in puppets[: 2 if device == "cpu" else 1]:
        puppet.become_ready(device)
    assert await asyncio.wait_for(starting, TIMEOUT) == device
    return supervisor, receiver


async def start_full_supervisor(puppets: list[Puppet], **stated: Any) -> tuple[Supervisor, RecordingReceiver]:
    """A supervisor whose workers are all ready: the quick one, two general ones, and the spare."""
    started_supervisor = await start_supervisor(puppets, **stated)
    for number in (2, 3):
        puppets[number].become_ready()
    return started_supervisor


def places(supervisor: Supervisor, puppets: list[Puppet]) -> tuple[int | None, list[int], int | None]:
    """Numbers of the quick, general and spare workers, in the order of their starts."""
    number: dict[Any, int] = {puppet: i for i, puppet in enumerate(puppets)}
    quick, spare = (None if each is None else number[each] for each in (supervisor.quick, supervisor.spare))
    return quick, [number[each] for each in supervisor.general], spare


@running
async def test_start_waits_for_a_worker_of_each_kind(puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that only general workers take would wait for the start of one, after a 200 of /health/ready."""
    supervisor = Supervisor(settings(), cast("Receiver", RecordingReceiver()), ["worker"])
    starting = asyncio.create_task(supervisor.start())
    await asyncio.sleep(0)
    assert len(puppets) == 2
    delayed = DelayedCalls(monkeypatch)
    puppets[0].become_ready()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not starting.done(), "there is no general worker yet"
    puppets[1].end()
    delayed.run_all()
    puppets[2].become_ready()
    assert await asyncio.wait_for(starting, TIMEOUT) == "cpu"
    assert places(supervisor, puppets) == (0, [2], None)


@running
async def test_workers_start_one_by_one_and_fill_the_needed_places(puppets: list[Puppet]) -> None:
    supervisor, receiver = await start_supervisor(puppets)
    for count in (2, 3):
        assert supervisor.ready == receiver.calls == count
        assert len(puppets) == count + 1
        puppets[count].become_ready()
    assert places(supervisor, puppets) == (0, [1, 2], 3)
    assert len(puppets) == len([*supervisor]) == 4
    assert supervisor.count() == {"quick": 1, "spare": 1, "long": 2}
    assert [puppet.steps_back for puppet in puppets] == [0, 1, 1, 0], "long jobs have time"
    assert [*map(puppets.index, supervisor.working)] == [0, 1, 2]


@running
async def test_worker_gets_its_share_of_settings_and_no_secret(puppets: list[Puppet]) -> None:
    await start_supervisor(puppets, plan_cache_bytes=4096, api_key="k" * 30)
    worker_settings = orjson.loads(puppets[0].settings)
    assert worker_settings["plan_cache_bytes"] == 4096 // 4
    assert "api_key" not in worker_settings
    assert puppets[0].command == ["worker"]


@pytest.mark.parametrize("confine", ["on", "off"])
@running
async def test_environment_has_allowed_files_and_memory_share(puppets: list[Puppet], confine: str) -> None:
    supervisor, _ = await start_supervisor(puppets, confine=confine)
    for puppet in puppets:
        assert int(puppet.environment[SHARE]) > 0
        assert (CONFINED_TO in puppet.environment) == (confine == "on")
    assert len([*supervisor]) == 3


@running
async def test_gpu_workers_are_all_general(puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: ("0", "2"))
    supervisor, _ = await start_supervisor(puppets, "cuda:0")
    puppets[1].become_ready("cuda:0")
    assert places(supervisor, puppets) == (None, [0, 1], None)
    assert len(puppets) == 2
    assert puppets[1].steps_back == 0, "it does what is short, too"
    assert puppets[1].environment["CUDA_VISIBLE_DEVICES"] == "2"


@running
async def test_replacement_gets_the_same_gpu(puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: ("0", "2"))
    delayed = DelayedCalls(monkeypatch)
    supervisor, _ = await start_supervisor(puppets, "cuda:0")
    puppets[1].become_ready("cuda:0")
    puppets[0].end()
    delayed.run_all()
    assert puppets[2].environment["CUDA_VISIBLE_DEVICES"] == "0"
    puppets[1].obeys = False
    supervisor.retire(puppets[1], "age")
    puppets[2].become_ready("cuda:0")
    assert puppets[3].environment["CUDA_VISIBLE_DEVICES"] == "2", "though that one has not ended yet"


@running
async def test_start_fails_with_the_first_worker(puppets: list[Puppet]) -> None:
    starting = asyncio.create_task(Supervisor(settings(), cast("Receiver", RecordingReceiver()), ["worker"]).start())
    await asyncio.sleep(0)
    puppets[0].failure = "there is no such device"
    puppets[0].end()
    with pytest.raises(RuntimeError, match="there is no such device"):
        await starting
    assert len(puppets) == 2


@running
async def test_workers_that_fail_to_start_are_retried_with_backoff(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    await start_supervisor(puppets)
    delayed, pauses = DelayedCalls(monkeypatch), []
    for _ in range(12):
        puppets[-1].end()
        pauses += delayed.run_all()
    longest = max(pauses)
    assert pauses == [min(longest, pauses[0] * 2**i) for i in range(12)]
    assert (pauses[1], pauses[-2]) == (2 * pauses[0], longest)
    puppets[-1].become_ready()
    puppets[-1].end()
    assert delayed.run_all() == pauses[:1], "from the beginning, once one has come"


@running
async def test_spare_replaces_a_dead_worker_and_a_new_one_starts(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, receiver = await start_full_supervisor(puppets)
    delayed, job = DelayedCalls(monkeypatch), object()
    puppets[0].tickets, puppets[0].executing = [job, job], job
    puppets[0].page.vitals = Vitals(5, 0)
    puppets[0].end()
    assert places(supervisor, puppets) == (3, [1, 2], None)
    assert receiver.lost_jobs == [([job, job], job)]
    assert (supervisor.ends, supervisor.kernels) == ({"died": 1}, 5)
    assert len(puppets) == 4
    (pause,) = delayed.run_all()
    assert pause > 0
    puppets[4].become_ready()
    assert places(supervisor, puppets) == (3, [1, 2], 4)


@running
async def test_last_worker_is_replaced_without_a_pause(puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch) -> None:
    await start_supervisor(puppets)
    DelayedCalls(monkeypatch)
    puppets[2].end()
    puppets[1].end()
    assert len(puppets) == 3
    puppets[0].end()
    assert len(puppets) == 4


@running
async def test_two_workers_start_at_once_if_most_are_missing(
    puppets: list[Puppet], monkeypatch: pytest.MonkeyPatch
) -> None:
    await start_full_supervisor(puppets)
    delayed = DelayedCalls(monkeypatch)
    for puppet in puppets[:3]:
        puppet.end()
    delayed.run_all()
    assert len(puppets) == 6
    puppets[4].become_ready()
    assert len(puppets) == 7, "half are there, one is starting"


@running
async def test_blocked_quick_worker_swaps_places_with_an_idle_one(puppets: list[Puppet]) -> None:
    supervisor, _ = await start_full_supervisor(puppets)
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
async def test_idle_worker_becomes_the_spare_again(puppets: list[Puppet]) -> None:
    supervisor, _ = await start_full_supervisor(puppets)
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
async def test_retiring_worker_is_replaced_before_it_exits(puppets: list[Puppet]) -> None:
    supervisor, receiver = await start_full_supervisor(puppets)
    puppets[1].obeys = False
    supervisor.retire(puppets[1], "age")
    assert places(supervisor, puppets) == (0, [2, 3], None)
    assert (puppets[1].reason, puppets[1].finished, len(puppets)) == ("age", True, 5)
    puppets[1].end()
    assert supervisor.ends == {"age": 1}
    assert receiver.lost_jobs == [([], None)]


@running
async def test_dismissed_worker_exits_by_itself(puppets: list[Puppet]) -> None:
    supervisor, _ = await start_full_supervisor(puppets)
    supervisor.dismiss(puppets[0], "memory")
    assert places(supervisor, puppets) == (3, [1, 2], None)
    assert (puppets[0].reason, puppets[0].finished, len(puppets)) == ("memory", False, 4)


@running
async def test_condemned_plan_is_sent_to_all_and_to_later_workers(
    puppets: list[Puppet],
) -> None:
    supervisor, _ = await start_supervisor(puppets)
    for _ in range(2):
        assert puppets[0].frames == []
        supervisor.signalled(puppets[0], signal.SIGSEGV, LastWords(PLAN, "", "sum"))
    condemned = [frames.text(frames.CONDEMNED, PLAN)]
    assert [puppet.frames for puppet in puppets] == [condemned, condemned, []], "the last one is not ready"
    puppets[2].become_ready()
    assert puppets[2].frames == condemned
    assert supervisor.incidents.counts == {"SIGSEGV": 2}


@pytest.mark.parametrize("obeys", [True, False])
@running
async def test_close_lets_workers_finish_and_kills_the_rest(puppets: list[Puppet], obeys: bool) -> None:
    supervisor, receiver = await start_full_supervisor(puppets)
    puppets[2].obeys = obeys
    await supervisor.close(0.0)
    assert [puppet.finished for puppet in puppets] == [True] * 4
    assert [puppet.killed for puppet in puppets] == [False, False, not obeys, False]
    supervisor.signalled(puppets[2], signal.SIGSEGV, LastWords(PLAN, "", ""))
    assert (len(puppets), receiver.lost_jobs, supervisor.ends) == (4, [], {})
    assert not supervisor.incidents.counts
