"""A program that commits until it is killed, and prints each acknowledged commit.

`python -m tests.service.store.committing PLACE FIRST` starts with the number FIRST. Commit N writes, atomically: the
tensors `pair_a` and `pair_b` filled with N; `turn_K` with K = N mod 7, or its deletion; a graph `graph_N` every tenth
time; and an answer `answer_N`. After the line "N", the next process that opens the place must find all of it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from service.store.object_journal import Tidiness
from tests.service.store.support import answer, ended, graph, journal, model, put, tensor

#: tidies often, so that kills hit tidying as well
OFTEN = Tidiness(dead_objects=5, dead_bytes=1 << 20, worn_bytes=1 << 20, small_objects=20, small_bytes=1 << 16)
TURNS = 7
LONG = 1e6


def is_end(number: int) -> bool:
    """Return whether this commit deletes its turn's tensor instead of writing it."""
    return number % 5 == 4


def batch_of(number: int) -> list:
    """Build the batch of a numbered commit."""
    turn = f"turn_{number % TURNS}"
    turn_write = ended(turn) if is_end(number) else tensor(turn, number, 10 + number % 3000)
    pair = tensor("pair_a", number, 1 + number % 500), tensor("pair_b", number, 4000)
    graphs = [graph(f"graph_{number}", b"x" * number)] if number % 10 == 0 else []
    models = [model(f"model_{number % TURNS}", None if is_end(number) else b"y" * number)]
    return put(
        *pair, turn_write, graphs=graphs, answers=[answer(f"answer_{number}", time.time() + LONG)], models=models
    )


def report(line: str) -> None:
    """Print a line for the parent process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(place: str, first: int) -> None:
    """Commit until killed."""
    opened = journal(Path(place), OFTEN)
    opened.load()
    report("ready")
    number = first
    while True:
        opened.commit(batch_of(number))
        report(f"{number}")
        number += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
