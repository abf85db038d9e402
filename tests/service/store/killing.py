"""Kills a program that commits, again and again, and looks each time whether all that it acknowledged is there."""

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
    """What the kills found."""

    kills: int = 0
    acknowledged: int = 0
    unacknowledged_kept: int = 0
    wrong: list[str] = field(default_factory=list)


def kill_often(place: Path, times: int, chance: random.Random) -> Toll:
    """Kill a writer so many times at a random moment of its work."""
    toll, last = Toll(), 0
    for _ in range(times):
        acknowledged = killed_once(place, last + 1, chance.random() * 0.1, chance.randrange(1, 12))
        toll.kills += 1
        toll.acknowledged += len(acknowledged)
        told = max([last, *acknowledged])
        last, wrong = looked_at(reopened(place), told)
        toll.wrong += [f"after kill {toll.kills}: {one}" for one in wrong]
        toll.unacknowledged_kept += last - told
    return toll


def killed_once(place: Path, first: int, seconds: float, commits: int) -> list[int]:
    """Start a writer, wait for so many acknowledgements and then so long, and kill it: what it acknowledged."""
    command = [sys.executable, "-m", "tests.service.store.committing", str(place), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        told = [int(writer.stdout.readline()) for _ in range(commits)]
        try:
            writer.wait(seconds)
        except subprocess.TimeoutExpired:
            writer.kill()
        return told + [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]


def looked_at(loaded: Loaded, told: int) -> tuple[int, list[str]]:
    """The last commit that is there, and what is wrong with the state that was acknowledged up to `told`."""
    tensors = {write.name: int(value_of(write)) for write in loaded.tensors}
    last = tensors.get("pair_a", 0)
    wrong = []
    if last not in (told, told + 1):
        wrong.append(f"commit {told} was acknowledged, and {last} is the last that is there")
    if tensors.get("pair_b", 0) != last:
        wrong.append(f"torn: pair_a is of commit {last}, pair_b of {tensors.get('pair_b')}")
    found = {name: value for name, value in tensors.items() if name.startswith("turn_")}
    if found != expected_turns(last):
        wrong.append(f"turns after {last}: {found}")
    wrong += unlike("graphs", [(g.graph_id, len(g.record or b"")) for g in loaded.graphs], graphs_until(last))
    wrong += unlike("answers", [one.key for one in loaded.answers], [f"answer_{n}" for n in range(1, last + 1)])
    models = {one.name: len(one.record or b"") for one in loaded.models}
    if models != {name.replace("turn", "model"): number for name, number in expected_turns(last).items()}:
        wrong.append(f"models after {last}: {models}")
    return last, wrong


def expected_turns(last: int) -> dict[str, int]:
    """The tensors that are written and ended in turn, after commit `last`."""
    latest = {number % TURNS: number for number in range(1, last + 1)}
    return {f"turn_{turn}": number for turn, number in latest.items() if not is_end(number)}


def graphs_until(last: int) -> list[tuple[str, int]]:
    """The graphs after commit `last`, each with its length."""
    return [(f"graph_{number}", number) for number in range(10, last + 1, 10)]


def unlike(what: str, found: Sequence[object], expected: Sequence[object]) -> list[str]:
    """What is wrong, where the one is not the other, in this order."""
    if found == expected:
        return []
    lost = [one for one in expected if one not in found]
    return [f"{what}: {len(found)} where {len(expected)} were written; lost: {lost[:5]}"]
