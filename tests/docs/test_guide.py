"""The guide: its requests and programs run and give the answers that it shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from examples.server import running_server
from service.api.calls import calls
from service.cli import main
from service.core.errors import KINDS
from service.core.settings import Settings
from tests.conftest import Client
from tests.docs.marked import CODE, MARKED, ROOT, blocks, codes_by_status, run_curl, same, text_of, without_stats
from tests.service.application import create_app, open_pool

FIRST, ERRORS, LIMITS = (f"docs/guide/{name}.md" for name in ("first-gradient", "errors", "limits-and-operations"))
BINARY, CALLS = "docs/guide/calls/binary.md", "docs/guide/calls/README.md"
PAGES = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "guide").rglob("*.md"))]
SENT = {*calls(), "http", "stopping"}
# Members of a problem that pages omit: different each time, or implied by the code.
LEFT_OUT = {"request_id", "type", "title"}
# Members of an answer that pages may omit, because they depend on the machine.
MACHINE_DEPENDENT = {"stats", "limits"}
ROW = re.compile(r"^\| (`--[^|]+) \| ([^|]+) \|", re.MULTILINE)


class Exchange(NamedTuple):
    """Request of a page, the settings in force, and the answer or problem after it.

    `before` has the earlier requests of the page that store something on the server.
    """

    settings: str
    kind: str
    request: str
    outcome: str
    shown: str
    before: tuple[str, ...]


def exchanges(page: str) -> Iterator[Exchange]:
    """Yield the exchanges of a page in order."""
    settings, kind, request, before = "", "", "", list[str]()
    for mark, code in MARKED.findall(text_of(page)):
        if mark == "settings":
            settings = code
        elif mark in SENT:
            kind, request = mark, code
        elif mark in {"answer", "problem"} and kind:
            yield Exchange(settings, kind, request, mark, code, tuple(before))
            before += [request] if request.startswith("POST /v1/graphs\n") else []
            kind = ""


ALL = [
    pytest.param(exchange, id=f"{Path(page).stem}-{i}") for page in PAGES for i, exchange in enumerate(exchanges(page))
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


@pytest.fixture(scope="module")
def stopping() -> Iterator[Client]:
    """Yield a client of a server that is shutting down."""
    settings = Settings(device="cpu")
    pool = open_pool(settings)
    pool.drain()
    client = Client(create_app(settings, pool))
    yield client
    client.close()


@pytest.fixture
def client_for(make_client: Callable[..., Client], client: Client, stopping: Client) -> Callable[[Exchange], Client]:
    """Return a function that gives a client of a server with the settings of an exchange."""

    def find(exchange: Exchange) -> Client:
        if exchange.kind == "stopping":
            return stopping
        stated = dict(re.findall(r"--([a-z-]+) (\S+)", exchange.settings))
        return make_client(**{name.replace("-", "_"): value for name, value in stated.items()}) if stated else client

    return find


def send(client: Client, kind: str, block: str) -> httpx.Response:
    """Send a block: a whole HTTP request, or the body of the call that its mark names."""
    if kind in calls():
        block = f"POST /v1/{kind}\n\n{block}"
    head, _, body = block.partition("\n\n")
    first, *lines = head.splitlines()
    method, path = first.split()
    return client.request(method, path, headers=dict(line.split(": ") for line in lines), content=body)


@pytest.mark.parametrize("exchange", ALL)
def test_guide_examples_match_answers(exchange: Exchange, client_for: Callable[[Exchange], Client]) -> None:
    client = client_for(exchange)
    for earlier in exchange.before:
        send(client, "http", earlier).raise_for_status()
    response = send(client, exchange.kind, exchange.request)
    assert response.is_error == (exchange.outcome == "problem"), response.text
    shown, answer = json.loads(exchange.shown), response.json()
    hidden = LEFT_OUT if response.is_error else MACHINE_DEPENDENT - shown.keys()
    actual = {key: value for key, value in answer.items() if key not in hidden}
    if "stats" in shown:
        actual["stats"] = {key: value for key, value in answer["stats"].items() if key in shown["stats"]}
    assert same(shown, actual), response.text


@pytest.mark.parametrize("page", PAGES)
def test_every_code_block_is_tested(page: str) -> None:
    fenced = re.findall(r"^```\w+$", text_of(page), re.MULTILINE)
    assert len(fenced) == len(MARKED.findall(text_of(page)))


@pytest.mark.parametrize(
    ("shown", "actual"), [({"a": 1.0}, {"a": 1.0, "b": 0}), ([1.0], [1.001]), (1, True), ([], [1])]
)
def test_same_detects_differences(shown: Any, actual: Any) -> None:
    assert not same(shown, actual)


@pytest.mark.slow
def test_first_gradient_curl_matches_answer(url: str) -> None:
    (command,), (shown,) = blocks(FIRST, "curl"), blocks(FIRST, "answer")
    answer = run_curl(command.replace("http://127.0.0.1:8000", url))
    assert same(json.loads(shown), without_stats(answer))


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "language", "name", "command"),
    [
        (FIRST, "typescript", "first.mjs", ["node"]),
        (FIRST, "go", "first.go", ["go", "run"]),
        (BINARY, "python", "binary.py", [sys.executable]),
    ],
    ids=["typescript", "go", "python"],
)
def test_guide_programs_print_expected_output(
    page: str, language: str, name: str, command: list[str], url: str, tmp_path: Path
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (code,), (shown,) = blocks(page, language), blocks(page, "output")
    (tmp_path / name).write_text(code, encoding="utf-8")
    run = subprocess.run([*command, name, url], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert run.stdout == shown, run.stderr


def test_every_call_and_example_is_documented() -> None:
    index = text_of(CALLS)
    assert not [call for call in calls() if f"[`{call}`](" not in index]
    helpers = {"adam", "resident_adam", "client", "run", "server", "poisson"}
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")} - helpers
    assert not [name for name in examples if index.count(f"/{name}.py)") != 1]
    pages = {path.stem for path in (ROOT / "docs/guide/calls").glob("*.md")} - {"README"}
    assert not [name for name in pages if f"({name}.md" not in index]
    for name in examples:
        pages_with_example = [page for page in PAGES if page != CALLS and f"/{name}.py)" in text_of(page)]
        assert pages_with_example, f"no page links to examples/{name}.py"


@pytest.mark.parametrize("call", [call for call in calls() if call != "forward"])
def test_call_page_documents_fields_and_example(call: str) -> None:
    """Exempt `forward`, which is on the page of `gradients`, and fields of all calls, which have their own pages."""
    page = f"docs/guide/calls/{call}.md"
    assert blocks(page, call)
    fields = {*calls()[call].request.__annotations__} - {
        "graph",
        "feeds",
        "encoding",
        "diagnose",
        "store",
        "memory_budget",
        "precision",
    }
    assert not [field for field in fields if f"`{field}`" not in text_of(page)]


def test_error_guide_lists_codes_by_status() -> None:
    text = text_of(ERRORS)
    advised = set()
    for section in text.split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        codes = set(CODE.findall(body)) & KINDS.keys()
        advised |= codes
        assert not [code for code in codes if str(KINDS[code].status) not in heading], heading
    assert advised == codes_by_status("docs/wire.md").keys() | {"forbidden", "internal_error"}


@pytest.mark.slow
def test_settings_table_matches_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    main(["settings"])
    defaults = dict(re.findall(r"^(--\S+) = .* \(default (.*); ", capsys.readouterr().out, re.MULTILINE))
    rows = ROW.findall(text_of(LIMITS))
    shown = {flag: stated for flags, cell in rows for flag, stated in flag_defaults(flags, cell)}
    assert shown.keys() == defaults.keys()
    fixed = {flag: stated for flag, stated in shown.items() if " " not in stated}
    assert len(fixed) == len(shown) - 11, "eleven defaults depend on the machine, or on other settings"
    assert not {flag: stated for flag, stated in fixed.items() if stated != defaults[flag]}


def flag_defaults(flags: str, cell: str) -> list[tuple[str, str]]:
    """Return the flags of a row, each with its default."""
    named = re.findall(r"`(--\S+)`", flags)
    return list(zip(named, cell.split(", ") if len(named) > 1 else [cell], strict=True))
