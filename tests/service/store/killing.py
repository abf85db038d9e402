"""Repeated kills of a program that commits, each followed by a check of everything that it acknowledged."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from service.store.journal import Loaded
from tests.service.store.committing import TURNS, is_end
from tests.service.store.support import reopened, value_of

ROOT = Path(__file__).parents[3]


@dataclass
class Toll:
    """Results of the kills."""

    kills: int = 0
    acknowledged: int = 0
    unacknowledged_kept: int = 0
    wrong: list[str] = field(default_factory=list)


def kill_often(place: Path, times: int, chance: random.Random) -> Toll:
    """Kill a writer `times` times at random moments."""
    toll, last = Toll(), 0
    for _ in range(times):
        acknowledged = kill_once(place, last + 1, chance.random() * 0.1, chance.randrange(1, 12))
        toll.kills += 1
        toll.acknowledged += len(acknowledged)
        last_acknowledged = max([last, *acknowledged])
        last, wrong = check_state(reopened(place), last_acknowledged)
        toll.wrong += [f"after kill {toll.kills}: {error}" for error in wrong]
        toll.unacknowledged_kept += last - last_acknowledged
    return toll


def kill_once(place: Path, first: int, seconds: float, commits: int) -> list[int]:
    """Start a writer, kill it some seconds after it has acknowledged `commits` commits, and return all acknowledged."""
    command = [sys.executable, "-m", "tests.service.store.committing", str(place), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        numbers = [int(writer.stdout.readline()) for _ in range(commits)]
        try:
            writer.wait(seconds)
        except subprocess.TimeoutExpired:
            writer.kill()
        return numbers + [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]


def check_state(loaded: Loaded, acknowledged: int) -> tuple[int, list[str]]:
    """Find the last commit in the state, and everything that is wrong if `acknowledged` was acknowledged."""
    tensors = {write.name: int(value_of(write)) for write in loaded.tensors}
    last = tensors.get("pair_a", 0)
    wrong = []
    if last not in (acknowledged, acknowledged + 1):
        wrong.append(f"commit {acknowledged} was acknowledged, and {last} is the last that is there")
    if tensors.get("pair_b", 0) != last:
        wrong.append(f"torn: pair_a is of commit {last}, pair_b of {tensors.get('pair_b')}")
    turns = {name: value for name, value in tensors.items() if name.startswith("turn_")}
    if turns != expected_turns(last):
        wrong.append(f"turns after {last}: {turns}")
    wrong += differences("graphs", [(g.graph_id, len(g.record or b"")) for g in loaded.graphs], graphs_until(last))
    wrong += differences(
        "answers", [write.key for write in loaded.answers], [f"answer_{n}" for n in range(1, last + 1)]
    )
    models = {write.name: len(write.record or b"") for write in loaded.models}
    if models != {name.replace("turn", "model"): number for name, number in expected_turns(last).items()}:
        wrong.append(f"models after {last}: {models}")
    return last, wrong


def expected_turns(last: int) -> dict[str, int]:
    """The turn tensors after commit `last`."""
    latest = {number % TURNS: number for number in range(1, last + 1)}
    return {f"turn_{turn}": number for turn, number in latest.items() if not is_end(number)}


def graphs_until(last: int) -> list[tuple[str, int]]:
    """The graphs after commit `last` with their lengths."""
    return [(f"graph_{number}", number) for number in range(10, last + 1, 10)]


def differences(kind: str, actual: Sequence[object], expected: Sequence[object]) -> list[str]:
    """Describe the difference of two sequences, if any."""
    if actual == expected:
        return []
    lost = [item for item in expected if item not in actual]
    return [f"{kind}: {len(actual)} where {len(expected)} were written; lost: {lost[:5]}"]
