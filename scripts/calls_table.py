"""Table of the calls in the guide, from their definitions; `scripts.build_docs` writes it into the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from service.api.calls import calls
from service.api.calls.description import CallDescription

PAGE: Final = Path(__file__).parents[1] / "docs/guide/calls/README.md"
_TABLE: Final = re.compile(r"(<!-- The calls[^\n]*-->\n).*?(\n<!-- end -->)", re.DOTALL)


def page_of_calls() -> str:
    """Return the page with its table regenerated."""
    rows = "\n".join(_row(call) for call in calls().values())
    head = "| call | result | approximate cost | use it for |\n| --- | --- | --- | --- |"
    return _TABLE.sub(lambda match: f"{match[1]}\n{head}\n{rows}\n{match[2]}", PAGE.read_text(encoding="utf-8"))


def _row(call: type[CallDescription]) -> str:
    name, page = f"`{call.name}`", call.guide.page or f"{call.name}.md"
    linked = f"[{name}]({page})" if PAGE.with_name(page.partition("#")[0]).is_file() else name
    return f"| {linked} | {call.guide.answers} | {call.guide.costs} | {call.guide.ask_for} |"
