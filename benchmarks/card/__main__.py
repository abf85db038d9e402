"""The command: phases one after the other, within so many minutes, a line for each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.card.figures import KEPT, WHOLE, CardFigures, where
from benchmarks.card.phases import MOST_SECONDS, PHASES, Lacking, Phase


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for, and keep what was found."""
    parser = argparse.ArgumentParser(description="Test and time the engine on this machine's card.")
    parser.add_argument("--minutes", type=float, default=20.0, help="of all phases together")
    parser.add_argument("--phase", default="", choices=["", *PHASES], help="one alone, which has all of the time")
    parser.add_argument("--output", type=Path, default=KEPT, help="figures, merged into what the file has")
    options = parser.parse_args(arguments)
    here = where()
    print(heading(here), flush=True)
    figures = CardFigures(options.output, here)
    for name, phase in PHASES.items():
        if options.phase in ("", name):
            share = 1.0 if options.phase else phase.share
            run_phase(name, phase, min(MOST_SECONDS, 60 * options.minutes * share), figures)


def heading(here: Mapping[str, Any]) -> str:
    """Where and on what, in a line."""
    card = ", ".join(here["card"].values()) or "no card"
    versions = ", ".join(f"{name} {number}" for name, number in here["versions"].items())
    return f"{card}; {here['processor']}, {here['cores']} cores; {versions}; {here['commit']}"


def run_phase(name: str, phase: Phase, seconds: float, figures: CardFigures) -> None:
    """Print a line for each row, or for what is lacking, and keep it at once. A phase that fails ends no other."""
    try:
        for each, row in phase.rows(seconds):
            figures.add(name, each, row)
            print(line(name, each, row), flush=True)
    except (Lacking, RuntimeError, OSError) as error:
        row = {"not_run": str(error)}
        figures.add(name, WHOLE, row)
        print(line(name, "", row), flush=True)


def line(phase: str, name: str, row: Mapping[str, Any]) -> str:
    """One row as it is read on a terminal."""
    called = f"{phase}, {name}" if name else phase
    if "not_run" in row:
        return f"{called}: not run: {row['not_run']}"
    if "sides" in row:
        sides = (f"{side} {each['median']:.3f} ms" for side, each in row["sides"].items())
        return f"{called}: {', '.join(sides)}"
    return f"{called}: {', '.join(f'{key} {_shown(value)}' for key, value in row.items())}"


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
