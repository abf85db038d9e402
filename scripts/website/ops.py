"""Pages of the ops, one each, and an index by the sections that the ops state."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from engine import describe, registry
from engine.ir.op import Definition
from engine.ops.sections import SECTIONS
from scripts.build_docs import definition, facts, table
from scripts.website.examples import Exchange, example
from service.core.settings import Settings
from service.web.pages.error_pages import format_json
from service.workers.worker import Worker

Row = Mapping[str, Any]

#: front matter of pages that only their index lists, because they are too many for the navigation of every page
ORPHAN = "---\norphan: true\n---\n\n"
INDEX = """
# The ops

Every op that a graph may use, as `GET /v1/ops` lists them, by family. In a signature, `b?` may be absent and `x...`
stands for one or more operands; `=` gives an attribute's default, `*` marks a required one. In the formula of a
gradient, `g` is the cotangent of the result `y`, and what was broadcast is summed back. Spellings of other systems are
on [a page of their own](../porting.md).

Each page ends with a request and what it is answered; both are made when the site is built.
""".lstrip()


def op_pages() -> dict[str, str]:
    """Return Markdown by path."""
    worker = Worker(Settings(device="cpu"))
    ops = list(registry().ops.values())
    rows = {row["name"]: row for row in describe(registry())}
    pages = {place_of(op.name): page(rows[op.name], example(op, ops, worker)) for op in ops}
    return {"ops/index.md": index(ops, rows), **pages}


def place_of(op: str) -> str:
    """Return the path of an op's page. ops/index.md is the index, so the op `index` has another name."""
    return f"ops/{'index_op' if op == 'index' else op}.md"


def page(row: Row, shown: Exchange) -> str:
    """Return the page of an op, with an example."""
    return "\n".join(
        [
            f"{ORPHAN}# {row['name']}",
            "",
            facts(row) + definition(row["name"], "../drawings"),
            "## Example",
            "",
            f"```sh\n{shown.command}\n```",
            f"```python\n{shown.program}\n```",
            "",
            "The answer, without its `stats`:" if shown.call == "forward" else _GRADIENTS,
            "",
            f"```json\n{format_json(shown.answer)}\n```",
            "",
            "[All ops](index.md)",
            "",
        ]
    )


_GRADIENTS = "The answer, without its `stats`; a `cotangent` in the request is the `g` of the formula:"


def index(ops: list[Definition], rows: Mapping[str, Row]) -> str:
    """Return the index: the sections in the order of their keys, with their ops."""
    return "\n".join([INDEX, *_sections(ops, rows)])


def _sections(ops: list[Definition], rows: Mapping[str, Row]) -> Iterator[str]:
    for (_, text), members in groupby(sorted(ops, key=lambda op: (section(op), op.name)), key=section):
        title, rest = heading(text)
        lines = (
            (f"[`{op.name}`]({place_of(op.name).removeprefix('ops/')})", rows[op.name]["summary"]) for op in members
        )
        yield f"## {title}\n\n{rest}\n" if rest else f"## {title}\n"
        yield table(("op", "what it is"), lines)


def section(op: Definition) -> tuple[str, str]:
    """Return key and text of the section that lists an op: the stated one, else its module's name and docstring."""
    module = type(op).__module__
    key = op.section or module.rpartition(".")[2]
    return key, SECTIONS[key] if op.section else sys.modules[module].__doc__ or ""


def heading(text: str) -> tuple[str, str]:
    """Split the first paragraph of a section's text into its heading and the rest."""
    first = " ".join(text.partition("\n\n")[0].split())
    title = re.split(r"[.:,;]", first, maxsplit=1)[0]
    return title, first.removeprefix(f"{title}.").lstrip()


def read_back(markdown: str) -> tuple[str, Any, Any]:
    """Return the example of a page, for tests: its call, its body and its answer."""
    match = re.search(r"/v1/(\w+) .*? -d '\n(.*?)'\n```.*?```json\n(.*?)\n```", markdown, re.DOTALL)
    assert match, "a page without an example"
    return match[1], json.loads(match[2]), json.loads(match[3])
