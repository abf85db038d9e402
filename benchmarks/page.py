"""Write the measured part of docs/performance.md, and its picture, from what `report` and `planning` left."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.goals import LOOP_OVER_BODY, verdict
from benchmarks.picture import draw
from benchmarks.problems.loops import PLANNED as LOOPS
from benchmarks.record import DEFAULT, ROOT
from benchmarks.suite import GROUPS
from scripts.build_docs import table
from scripts.generated_part import replace_part

PAGE: Final = ROOT / "docs" / "performance.md"
START, END = "<!-- measured: written by `make bench` -->\n", "<!-- end of measured -->"
PEERS: Final = ("torch", "torch.compile", "jax", "autograd")
NAMES: Final = {"torch": "PyTorch", "torch.compile": "torch.compile", "jax": "JAX", "autograd": "HIPS autograd"}
TITLES: Final = {
    "workloads": "Value and all gradients",
    "networks": "Networks of many layers, value and all gradients",
    "layers": "Layers, each way",
    "adbench": "ADBench, float64",
    "loops": "Loops, on one thread; value and all gradients, and values alone",
    "spectra": "Complex numbers and spectra; value and all gradients, and values alone",
    "decompositions": "Decompositions and indices; value and all gradients, and values alone",
}
Rows = Mapping[str, Mapping[str, Any]]
Groups = Mapping[str, Rows]

INTRODUCTION: Final = """\
Each side runs in a process of its own. They take turns in bursts of 60 ms, so that threads of one that still spin
do not disturb the next; a figure is the median over bursts, from resident operands to finished results. All results
were compared before they were timed. The peers are warm and as fast as they get without changing the problem: PyTorch
eager and by
`torch.compile` (static shapes), JAX with everything inside one `jit`, all on the same cores. **Ratios are our time
divided by theirs: below 1, ours is shorter.** In brackets: the quartiles of our own time, as parts of its median.
"""


def measured(groups: Groups) -> Iterator[str]:
    """The sections, as Markdown."""
    yield conditions(groups)
    yield INTRODUCTION
    for group, title in TITLES.items():
        if group in groups:
            yield f"## {title}\n\n{ratios(groups[group])}\n"
    yield "![Ratios, and curves over nodes, elements and examples](performance.svg)\n"
    if "composites" in groups:
        yield f"## Composites, and the same from primitives\n\n{ratios(groups['composites'])}\n"
        yield own_ratios(groups["composites"])
    for title, section in (("Until the first result", first_results), ("Peak memory", memory)):
        chosen = {name: row for group in ("workloads", "adbench") for name, row in groups.get(group, {}).items()}
        if chosen:
            yield f"## {title}\n\n{section(chosen)}\n"
    if "planning" in groups:
        yield f"## Planning\n\n{planning(groups['planning'])}\n"
    if "ops" in groups:
        yield f"## Every op\n\n{ops(groups['ops'])}\n"
    yield f"## What is missed\n\n{missed(groups)}\n"


def in_order(groups: Groups) -> Groups:
    """Rows in the order of the suite, and not in that in which they were measured."""
    return {
        group: {name: rows[name] for name in [*GROUPS.get(group, rows), *rows] if name in rows}
        for group, rows in groups.items()
    }


def conditions(groups: Groups) -> str:
    """Where, when and on what, from the rows themselves: all that occur."""
    rows = [row for group in groups.values() for row in group.values()]
    days = sorted({row["when"][:10] for row in rows})
    wheres = [(row["where"]["processor"], row.get("threads", row["where"]["cores"])) for row in rows]
    machines = sorted({f"{processor}, threads: {threads}" for processor, threads in wheres})
    versions = {f"{name} {number}" for row in rows for name, number in row["where"]["versions"].items()}
    commits = sorted({row["where"]["commit"] for row in rows})
    loads = [row["where"]["load"] for row in rows]
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"`make bench PEERS=1`, {when}, on {'; '.join(machines)} (load {min(loads):.1f} to {max(loads):.1f} before the"
        f" run), with {', '.join(sorted(versions))}; commit {', '.join(commits)}.\n"
    )


def ratios(rows: Rows) -> str:
    """Our quartiles, and the ratio to each peer."""
    head = ("workload", "ours", *(NAMES[peer] for peer in PEERS), "goal")
    return table(head, [[*_ratios(name, row)] for name, row in rows.items()])


def _ratios(name: str, row: Mapping[str, Any]) -> Iterator[str]:
    yield row["title"]
    if "failed" in row:
        yield row["failed"]
        yield from ["–"] * len(PEERS)
        return
    ours = row["sides"]["gradserve"]
    yield f"1 ({ours['lower'] / ours['median']:.2f} to {ours['upper'] / ours['median']:.2f})"
    yield from (_cell(row["sides"].get(peer)) for peer in PEERS)
    yield verdict(name, row)


def _cell(side: Mapping[str, Any] | None) -> str:
    return "–" if side is None else f"{side['ratio']:.2f}"


def own_ratios(rows: Rows) -> str:
    """How a composite compares with the same from primitives."""
    pairs = [(name, rows[name], rows[f"{name}-primitives"]) for name in rows if f"{name}-primitives" in rows]
    found = [
        f"{name} {one['sides']['gradserve']['median'] / other['sides']['gradserve']['median']:.2f}"
        for name, one, other in pairs
        if "sides" in one and "sides" in other
    ]
    return f"One op, as a part of the time of the same from primitives: {', '.join(found)}.\n"


def first_results(rows: Rows) -> str:
    """Seconds from a definition to the first result, in a process that has run something else before."""
    head = ("workload", "plan ms", "first run ms", *(f"{NAMES[peer]} ms" for peer in PEERS))
    lines = []
    for row in _measured(rows):
        ours = row["sides"]["gradserve"]["seconds"]
        theirs = [row["sides"].get(peer, {}).get("seconds") for peer in PEERS]
        lines.append(
            [
                row["title"],
                *map(_ms, (ours["plan"], ours["first run"])),
                *(_ms(sum(each.values())) if each else "–" for each in theirs),
            ]
        )
    return table(head, lines)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def memory(rows: Rows) -> str:
    """How much the process grew, preparing and two runs, what compiling takes included."""
    head = ("workload", "ours MB", *(f"{NAMES[peer]} MB" for peer in PEERS))
    lines = [
        [row["title"], *(_megabytes(row["sides"].get(side, {}).get("bytes")) for side in ("gradserve", *PEERS))]
        for row in _measured(rows)
    ]
    return (
        table(head, lines) + "\nWhat a process grew by, at its most: what it computes in, and what compiling takes.\n"
    )


def _megabytes(count: int | None) -> str:
    return "–" if count is None else f"{count / 1e6:,.0f}"


def _measured(rows: Rows) -> list[Mapping[str, Any]]:
    return [row for row in rows.values() if "sides" in row]


def planning(rows: Rows) -> str:
    """Milliseconds, and beside an older commit; and what a loop takes for what it does at each step."""
    head = ("workload", "plan ms", "ratio to the older commit")
    lines = [
        [name, f"{row['gradserve']['median']:.1f}", f"{row['ratio']:.2f}" if "ratio" in row else "–"]
        for name, row in rows.items()
    ]
    return "\n".join([table(head, lines), *_planned_loops(rows)])


def _planned_loops(rows: Rows) -> Iterator[str]:
    """How many steps there are, and that there is a loop, as ratios."""
    if {*LOOPS} <= rows.keys():
        few, many, body = (rows[name]["gradserve"]["median"] for name in LOOPS)
        yield (
            f"A loop of a million steps is planned in {many / few:.2f} × the time of one of ten, and in"
            f" {many / body:.2f} × that of its step's gradient without a loop (goal: {LOOP_OVER_BODY:g}).\n"
        )


def ops(rows: Rows) -> str:
    """One row for each op, the slowest beside PyTorch first; what it has no function for comes last."""
    kept = sorted(_measured(rows), key=lambda row: -_cell_value(row))
    head = ("op", "ours ms", "ratio to PyTorch, both on one thread")
    lines = [
        [row["title"], f"{row['sides']['gradserve']['median']:.3f}", _cell(row["sides"].get("torch"))] for row in kept
    ]
    known = [row["sides"]["torch"]["ratio"] for row in kept if "torch" in row["sides"]]
    summary = f"Of {len(known)} ops that PyTorch has, too, {sum(r <= 1 for r in known)} take at most its time."
    return f"{summary}\n\n<details><summary>All ops</summary>\n\n{table(head, lines)}\n\n</details>"


def _cell_value(row: Mapping[str, Any]) -> float:
    side = row["sides"].get("torch")
    return float(side["ratio"]) if side else -1.0


def missed(groups: Groups) -> str:
    """Each goal that was not reached, or was not measured."""
    lines = []
    for group in ("workloads", "adbench", "loops"):
        for name, row in groups.get(group, {}).items():
            found = "failed: " + row["failed"] if "failed" in row else verdict(name, row)
            if found.startswith(("missed", "failed", "not")):
                lines.append(f"- {row['title']}: {found}")
    return "\n".join(lines) or "None of the goals of this page."


def written(text: str, sections: Iterator[str]) -> str:
    """The page with these sections in place of its own. Raises ValueError where the page has no place for them."""
    return replace_part(text, START, END, "\n".join(sections), "what was measured")


def main() -> None:
    """Write the page and the picture."""
    parser = argparse.ArgumentParser(description="Write docs/performance.md and its picture from measured results.")
    parser.add_argument("--results", type=Path, default=DEFAULT)
    options = parser.parse_args()
    groups = in_order(json.loads(options.results.read_text("utf-8")))
    PAGE.write_text(written(PAGE.read_text("utf-8"), measured(groups)), "utf-8")
    draw(groups, PAGE.with_suffix(".svg"))
    print(f"wrote {PAGE.name} and its picture")


if __name__ == "__main__":
    main()
