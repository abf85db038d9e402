"""Write the part of docs/performance.md that is about the service, from what `make bench-service` left."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.page import PAGE, conditions
from benchmarks.service.__main__ import KEPT
from benchmarks.service.goals import verdict
from scripts.build_docs import table
from scripts.generated_part import replace_part

START, END = "<!-- service: written by `make bench-service` -->\n", "<!-- end of service -->"
Rows = Mapping[str, Mapping[str, Any]]

INTRODUCTION: Final = """\
Server and load share the machine's cores. The sides of a row take turns in bursts of some seconds, by
[wrk](https://github.com/wg/wrk) on one thread: each connection sends as soon as it has its answer. Figures are medians
over the bursts, in brackets the quartiles of the rate as parts of its median; ratios are rates by ours.
[FastAPI with PyTorch](../benchmarks/service/peers/fastapi_torch.py) runs under uvicorn with uvloop and httptools;
*tuned* it is `async def` and PyTorch is kept to one thread.
[tesseract-core](../benchmarks/service/peers/tesseract_density.py) serves `vector_jacobian_product` by its own runtime.
[The echo](../benchmarks/service/bare.py) gets a body in parts from its parser and sends them back; the *floor* receives
it into one block; *the worker in process* answers there, with no isolation, no admission and no deadline.
"""


def sections(rows: Rows) -> Iterator[str]:
    """Conditions, a table of rates, one of times in an open loop, and what was not measured."""
    present = {name: row for name, row in rows.items() if not row["absent"]}
    if not present:
        yield "Nothing has been measured yet.\n"
        return
    yield conditions({"service": present}).replace("`make bench PEERS=1`", "`make bench-service PEERS=1`")
    yield INTRODUCTION
    head = ("what", "connections", "server", "answers a second", "p50 ms", "p99 ms", "ratio", "goal")
    yield table(head, [line for name, row in present.items() for line in closed(name, row)])
    yield "At 70 % of its own highest rate, requests due at random moments; a time begins when its request is due:\n"
    opened_head = ("what", "connections", "server", "asked a second", "p50 ms", "p99 ms", "refused")
    yield table(opened_head, [line for row in present.values() for line in opened(row)])
    yield from (f"Not measured: {row['title']}, {row['absent']}.\n" for row in rows.values() if row["absent"])


def closed(name: str, row: Mapping[str, Any]) -> Iterator[list[str]]:
    """A line for each side."""
    ours = next(iter(row["sides"].values()))["rate"]["median"]
    for i, (side, found) in enumerate(row["sides"].items()):
        rate = found["rate"]
        spread = f"({rate['lower'] / rate['median']:.2f} to {rate['upper'] / rate['median']:.2f})"
        first = (row["title"], str(row["connections"])) if i == 0 else ("", "")
        times = [f"{found[what]['median']:.2f}" for what in ("p50", "p99")]
        goal = verdict(name, row["sides"]) if i == 0 else ""
        yield [*first, side, f"{rate['median']:,.0f} {spread}", *times, f"{ours / rate['median']:.2f}", goal]


def opened(row: Mapping[str, Any]) -> Iterator[list[str]]:
    """A line for each side of a row that was measured in an open loop."""
    for i, (side, found) in enumerate(row.get("open", {}).items()):
        first = (row["title"], str(row["connections"])) if i == 0 else ("", "")
        yield [
            *first,
            side,
            f"{found['asked']:,.0f}",
            f"{found['p50']:.2f}",
            f"{found['p99']:.2f}",
            str(found["refused"]),
        ]


def written(text: str, parts: Iterator[str]) -> str:
    """The page with these sections in place of its own. Raises ValueError where the page has no place for them."""
    return replace_part(text, START, END, "\n".join(parts), "what was measured")


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the service's part of docs/performance.md.")
    parser.add_argument("--results", type=Path, default=KEPT)
    options = parser.parse_args()
    rows = json.loads(options.results.read_text("utf-8")).get("service", {})
    PAGE.write_text(written(PAGE.read_text("utf-8"), sections(rows)), "utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
