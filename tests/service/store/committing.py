"""A program that commits without an end, and acknowledges by its output what is on disk: to be killed.

`python -m tests.service.store.committing PLACE FIRST` goes on from the number FIRST. A commit N writes, at once: the
tensors `pair_a` and `pair_b` full of N; `turn_K` with K = N mod 7, or its end; a graph `graph_N` every tenth time, and
an answer `answer_N`. Upon the line "N", all of it has to be there for whoever opens the place next.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from service.store.object_journal import Tidiness
from tests.service.store.support import answer, ended, graph, journal, model, put, tensor

#: often tidied, so that kills meet that as well
OFTEN = Tidiness(dead_objects=5, dead_bytes=1 << 20, worn_bytes=1 << 20, small_objects=20, small_bytes=1 << 16)
TURNS = 7
LONG = 1e6


def is_end(number: int) -> bool:
    """Whether this commit ends its turn's tensor instead of writing it."""
    return number % 5 == 4


def batch_of(number: int) -> list:
    """What the commit of a number writes."""
    turn = f"turn_{number % TURNS}"
    one = ended(turn) if is_end(number) else tensor(turn, number, 10 + number % 3000)
    pair = tensor("pair_a", number, 1 + number % 500), tensor("pair_b", number, 4000)
    graphs = [graph(f"graph_{number}", b"x" * number)] if number % 10 == 0 else []
    models = [model(f"model_{number % TURNS}", None if is_end(number) else b"y" * number)]
    return put(*pair, one, graphs=graphs, answers=[answer(f"answer_{number}", time.time() + LONG)], models=models)


def say(line: str) -> None:
    """To whoever waits for it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(place: str, first: int) -> None:
    """Commit until killed."""
    opened = journal(Path(place), OFTEN)
    opened.load()
    say("ready")
    number = first
    while True:
        opened.commit(batch_of(number))
        say(f"{number}")
        number += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
