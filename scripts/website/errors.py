"""Pages of the error codes, from the pages that the server itself shows under /docs/errors."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scripts.build_docs import table
from scripts.website.ops import ORPHAN
from scripts.write_openapi import build_document
from service.web.pages.documentation import OPENING
from service.web.pages.error_pages import ErrorPage, Example, error_pages, format_json

_INDEX = f"""
# Error codes

{OPENING} A server has these pages, too, under `/docs/errors`. [The guide](../guide/errors.md) explains how to read a
problem report.
""".lstrip()


def code_pages() -> dict[str, str]:
    """Return Markdown by path."""
    explained = error_pages(build_document())
    shown = {f"errors/{code}.md": page(explanation) for code, explanation in explained.items()}
    return {"errors/index.md": index(explained.values()), **shown}


def index(explained: Iterable[ErrorPage]) -> str:
    """Return the list of all codes, by status."""
    lines = (
        (
            str(page.kind.status),
            f"[`{page.code}`]({page.code}.md)",
            f"{page.kind.title}.{' (reserved)' if page.reserved else ''}",
        )
        for page in explained
    )
    return "\n".join([prose(_INDEX), table(("status", "code", "meaning"), lines)])


def page(page: ErrorPage) -> str:
    """Return the page of a code."""
    parts = [
        f"{ORPHAN}# {page.code}",
        f"**{page.kind.status}: {page.kind.title}.**",
        *([page.where] if page.reserved else []),
        page.explanation.meaning,
        "## What to do",
        page.explanation.remedy,
        *([] if page.example is None else _example(page.example)),
        *([] if page.reserved else ["## Where", page.where]),
        "[All codes](index.md)",
    ]
    return "\n\n".join(map(prose, parts)) + "\n"


def _example(example: Example) -> list[str]:
    problem = f"```json\n{format_json(example.problem)}\n```"
    if example.request is None:
        return ["## Example", "Response:", problem]
    return ["## Example", "This request:", f"```http\n{example.request.text}\n```", "gets this response:", problem]


def prose(text: str) -> str:
    """Replace links to pages of the server with text, since the site is not on the server."""
    return re.sub(r"\[([^]]+)\]\((/[^)]+)\)", r"\1 (`\2` on the server)", text)
