"""Newcomers' mistakes, and the sentence that each gets: those of docs/guide/mistakes.md.

`GRADSERVE_UPDATE_MISTAKES=1` rewrites the page; then read the diff as a newcomer would.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT, Client
from tests.mistakes.mistakes import MISTAKES, Mistake
from tests.service.command_support import called

PAGE = ROOT / "docs/guide/mistakes.md"
COUNT = sum(map(len, MISTAKES.values()))
HEAD = f"""# Common mistakes

{COUNT} mistakes that newcomers make, and the error that each gets. An error names the place, what was expected and what
came; [Errors](errors.md) explains its fields, and what to do about each code. The tests send these requests, so the
sentences are those of this version.
"""
ALL = [mistake for group in MISTAKES.values() for mistake in group]
REQUESTS = [(mistake.about, mistake) for mistake in ALL if not mistake.arguments]
COMMANDS = [(mistake.about, mistake) for mistake in ALL if mistake.arguments]


def request_sentence(client: Client, mistake: Mistake) -> str:
    """Code and sentence of the problem report for a request."""
    response = client.request(mistake.method, mistake.path, content=mistake.content, headers=dict(mistake.headers))
    assert 400 <= response.status_code < 500, response.text
    report = response.json()
    return f"{report['code']}: {report['detail']}"


def command_sentence(mistake: Mistake) -> str:
    """Error that a command prints."""
    done = called(*mistake.arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr.strip()


def cell(text: str) -> str:
    """A cell of a table in Markdown."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def row(mistake: Mistake, sentence: str) -> str:
    fence = "``" if "`" in mistake.sent else "`"
    sent = f"{fence}{mistake.sent or '(nothing)'}{fence}".replace("|", "\\|")
    return f"| {cell(mistake.about)} | {sent} | {cell(sentence)} |"


def page_rows() -> dict[str, str]:
    """The rows of the page, by the first cell."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| Mistake |")]
    return {line.split(" | ")[0].removeprefix("| "): line for line in rows}


def written(client: Client) -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    for title, mistakes in MISTAKES.items():
        yield f"## {title}\n"
        yield "| Mistake | What you send | What gradserve says |"
        yield "|---|---|---|"
        for mistake in mistakes:
            yield row(mistake, command_sentence(mistake) if mistake.arguments else request_sentence(client, mistake))
        yield ""


def test_titles_are_distinct() -> None:
    titles = [cell(about) for about, _ in (*REQUESTS, *COMMANDS)]
    assert len({*titles}) == len(titles)
    assert [*page_rows()] == titles
    assert PAGE.read_text(encoding="utf-8").startswith(HEAD)


@pytest.mark.parametrize(("about", "mistake"), REQUESTS, ids=[about for about, _ in REQUESTS])
def test_each_request_gets_the_sentence_of_the_page(client: Client, about: str, mistake: Mistake) -> None:
    assert row(mistake, request_sentence(client, mistake)) == page_rows()[cell(about)]


@pytest.mark.slow
@pytest.mark.parametrize(("about", "mistake"), COMMANDS, ids=[about for about, _ in COMMANDS])
def test_each_command_gets_the_sentence_of_the_page(about: str, mistake: Mistake) -> None:
    assert row(mistake, command_sentence(mistake)) == page_rows()[cell(about)]


@pytest.mark.parametrize(
    ("about", "hint"),
    [
        ("functions without the opset", 'add "opset": 2 to the graph'),
        ("an attribute beside `attrs`", "put axis in attrs"),
        ("operands by name", "nodes are referenced by index: “w” is node 0"),
        ("`of` by name", "nodes are referenced by index: “loss” is node 2"),
        ("a feed by name", "nodes are referenced by index: “w” is node 0"),
        ("C's dtype", "did you mean float64?"),
        ("a dtype of Rust", "did you mean float32?"),
        ("a dtype with a capital", "did you mean float32 or float64?"),
        ("`timeout_ms` in the body", "it is a query parameter"),
        ("POST to store a tensor", "did you mean PUT /v1/tensors/{name}?"),
        ("a singular", "did you mean /v1/gradients?"),
        ("a path without its version", "did you mean /v1/gradients?"),
        ("a health check by its usual name", "did you mean /health/"),
        ("a constant as a bare number", '{"dtype": "float64", "shape": [], "data": [0.1]}'),
        ("a number in place of a list", "write [0]"),
        ("the Hessian of several elements", "reduce it to one element (sum, mean), or ask for its jacobian"),
        ("a short flag", "did you mean --port?"),
        ("a command of other programs", "did you mean serve?"),
        ("a size with a wrong unit", "4GiB"),
        ("a port that is no number", "as in --port 8000"),
    ],
)
def test_hints(about: str, hint: str) -> None:
    assert hint in page_rows()[cell(about)]


@pytest.mark.skipif("GRADSERVE_UPDATE_MISTAKES" not in os.environ, reason="writes the page")
def test_update(client: Client) -> None:
    text = "\n".join(written(client))
    PAGE.write_text(re.sub("\n{3,}", "\n\n", text).rstrip() + "\n", encoding="utf-8")
