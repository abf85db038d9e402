"""The picture of docs/performance.md: ratios to each peer, and times over nodes, elements and examples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

COLOURS: Final = {
    "gradserve": "#000000",
    "torch": "#e4572e",
    "torch.compile": "#f3a712",
    "jax": "#2e86ab",
    "autograd": "#8a8a8a",
}
CURVES: Final = {
    "nodes": "nodes on 64 numbers",
    "elements": "numbers, eight ops",
    "batch": "examples, perceptron 8-16-1",
}
Groups = Mapping[str, Mapping[str, Mapping[str, Any]]]


def draw(groups: Groups, path: Path) -> None:
    """Write it as SVG, the same bytes for the same results."""
    import matplotlib as mpl  # noqa: PLC0415 - of the extra `demo`
    from matplotlib.figure import Figure  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "gradserve"
    figure = Figure(figsize=(11, 8), layout="constrained")
    grid = figure.add_gridspec(2, 3)
    bars(figure.add_subplot(grid[0, :]), groups)
    for i, (prefix, label) in enumerate(CURVES.items()):
        curve(figure.add_subplot(grid[1, i]), groups.get("scaling", {}), prefix, label)
    figure.savefig(path, metadata={"Date": None})


def bars(axes: Any, groups: Groups) -> None:
    """Ratios, on a logarithmic scale: below the line our time is shorter."""
    rows = [
        (name, row) for group in ("workloads", "adbench", "composites") for name, row in groups.get(group, {}).items()
    ]
    shown = [(name, row["sides"]) for name, row in rows if "sides" in row]
    for k, (peer, colour) in enumerate(list(COLOURS.items())[1:]):
        places = [i for i, (_, sides) in enumerate(shown) if peer in sides]
        heights = [shown[i][1][peer]["ratio"] for i in places]
        axes.bar([i + 0.2 * k - 0.3 for i in places], [h - 1 for h in heights], 0.18, 1, color=colour, label=peer)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(shown)), [name for name, _ in shown], rotation=45, ha="right")
    axes.set_ylabel("our time / theirs")
    axes.legend(ncols=4, frameon=False)


def curve(axes: Any, rows: Mapping[str, Mapping[str, Any]], prefix: str, label: str) -> None:
    """Milliseconds over the extent, for each side; dashed, what our plan takes to make."""
    shown = [row for name, row in rows.items() if name.startswith(prefix + "-") and "sides" in row]
    shown.sort(key=lambda row: int(row["extent"]))
    for side, colour in COLOURS.items():
        points = [(row["extent"], row["sides"][side]["median"]) for row in shown if side in row["sides"]]
        axes.plot(*zip(*points, strict=True) if points else ((), ()), ".-", color=colour, label=side)
    plans = [(row["extent"], 1000 * row["sides"]["gradserve"]["seconds"]["plan"]) for row in shown]
    if prefix == "nodes" and plans:
        axes.plot(*zip(*plans, strict=True), "--", color=COLOURS["gradserve"], label="our plan")
        axes.legend(frameon=False)
    if shown:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel(label)
    axes.set_ylabel("ms")
