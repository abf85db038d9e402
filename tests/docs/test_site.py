"""The pages of the site: one for every op and code, and links between files as links between pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine import registry
from scripts.website import assemble, check, examples, ops
from scripts.website.errors import code_pages, prose
from service.core.errors import KINDS
from service.core.settings import Settings
from service.web.pages.error_pages import EXPLANATIONS
from service.workers.worker import Worker
from tests.conftest import Client
from tests.docs.marked import same, text_of, without_stats
from tests.sampling import together

pytestmark = pytest.mark.slow

OPS = list(registry().ops)


@pytest.fixture(scope="module")
def op_pages() -> dict[str, str]:
    return ops.op_pages()


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return assemble.written_pages()


class TestOps:
    """Every op has a page, and the page's example is what the server answers."""

    @together
    @pytest.mark.parametrize("name", OPS)
    def test_the_example_is_answered_so(self, client: Client, op_pages: dict[str, str], name: str) -> None:
        call, body, shown = ops.read_back(op_pages[ops.place_of(name)])
        answer = client.post(f"/v1/{call}", json=body)
        assert answer.status_code == 200, answer.text
        assert same(shown, without_stats(answer.json()))
        assert name in {node["op"] for node in body["graph"]["nodes"]}

    @together
    @pytest.mark.parametrize("name", OPS)
    def test_the_example_is_a_program_of_python_too(self, op_pages: dict[str, str], name: str) -> None:
        """It sends what the command sends."""
        call, body, _ = ops.read_back(op_pages[ops.place_of(name)])
        (program,) = re.findall(r"```python\n(.*?)\n```", op_pages[ops.place_of(name)], re.DOTALL)
        compile(program, name, "exec")
        assert f"/v1/{call}" in program
        (sent,) = re.findall(r"r'''(.*?)'''", program, re.DOTALL)
        assert json.loads(sent) == body

    @together
    @pytest.mark.parametrize("name", OPS)
    def test_the_example_shows_numbers(self, op_pages: dict[str, str], name: str) -> None:
        call, _, shown = ops.read_back(op_pages[ops.place_of(name)])
        assert shown["values"][0]["tensor"]["data"]
        tells = registry().ops[name].gradient
        assert (call == "gradients") == (name == "parameter" or not tells.startswith("none"))

    def test_the_index_has_every_op_once(self, op_pages: dict[str, str]) -> None:
        assert sorted(op_pages) == sorted(["ops/index.md", *(ops.place_of(name) for name in OPS)])
        assert not [
            name for name in OPS if op_pages["ops/index.md"].count(f"]({ops.place_of(name).removeprefix('ops/')})") != 1
        ]

    @pytest.mark.parametrize(
        ("text", "heading"),
        [
            ("Softmax. This file is a complete op.", ("Softmax", "This file is a complete op.")),
            ("Losses: a number for each row.", ("Losses", "Losses: a number for each row.")),
            ("Running\nsums.\n\nMore.", ("Running sums", "")),
        ],
    )
    def test_the_heading_of_a_section(self, text: str, heading: tuple[str, str]) -> None:
        assert ops.heading(text) == heading

    def test_a_sample_that_its_op_refuses_is_noticed(self) -> None:
        worker = Worker(Settings(device="cpu"))
        with pytest.raises(RuntimeError, match="takes 2 operands"):
            examples._ask(registry().ops["add"], {"graph": {"nodes": [{"op": "add"}]}}, worker)


class TestCodes:
    """Every code has a page, made from what the server shows."""

    def test_the_pages(self) -> None:
        pages = code_pages()
        assert sorted(pages) == sorted(["errors/index.md", *(f"errors/{code}.md" for code in KINDS)])
        for code, (meaning, remedy) in EXPLANATIONS.items():
            assert prose(meaning) in pages[f"errors/{code}.md"]
            assert prose(remedy) in pages[f"errors/{code}.md"]
            assert f"]({code}.md)" in pages["errors/index.md"]
            assert f"\n# {code}\n" in pages[f"errors/{code}.md"]
            assert "\n## What to do\n" in pages[f"errors/{code}.md"]
            reserved = "\n## Example\n" not in pages[f"errors/{code}.md"]
            assert ("\n\nReserved: no call answers it yet.\n\n" in pages[f"errors/{code}.md"]) == reserved
            assert ("\n## Where\n" in pages[f"errors/{code}.md"]) != reserved

    def test_a_link_to_the_server_becomes_words(self) -> None:
        assert prose("see [the calls](/docs), [here](x.md)") == "see the calls (`/docs` on the server), [here](x.md)"


class TestAssembly:
    """Links between files become links between pages."""

    def turned(self, text: str, source: str = "docs/guide/new.md") -> tuple[str, list[str]]:
        places = assemble._places() | {assemble.PurePosixPath(source): source.removeprefix("docs/")}
        shown: set[assemble.PurePosixPath] = set()
        return assemble._turned(text, assemble.PurePosixPath(source), places, shown), sorted(map(str, shown))

    @pytest.mark.parametrize(
        ("link", "target"),
        [
            ("../wire.md#errors", "../wire.md#errors"),
            ("errors.md", "errors.md"),
            ("../ops.md", "../ops/index.md"),
            ("../ops.md#softmax", "../ops/softmax.md"),
            ("../../README.md", "../index.md"),
            ("#here", "#here"),
            ("https://example.com/a.md", "https://example.com/a.md"),
        ],
    )
    def test_a_link_to_a_page(self, link: str, target: str) -> None:
        assert self.turned(f"[a]({link})") == (f"[a]({target})", [])

    def test_a_link_to_a_file_leads_to_a_page_that_shows_it(self) -> None:
        assert self.turned("[a](../../engine/__init__.py)") == (
            "[a](../source/engine/__init__.py.md)",
            ["engine/__init__.py"],
        )
        assert self.turned("[a](../../tests/spec/)") == ("[a](../source/tests/spec.md)", ["tests/spec"])

    def test_what_is_fenced_stays(self) -> None:
        assert self.turned("```text\n[a](../ops.md)\n```\n[a](../ops.md)")[0].splitlines() == [
            "```text", "[a](../ops.md)", "```", "[a](../ops/index.md)",
        ]  # fmt: skip

    def test_a_link_to_nothing_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"new\.md refers to nothing\.py"):
            self.turned("[a](nothing.py)")

    def test_files_are_shown_whole(self, written: dict[str, str]) -> None:
        shown = [page for page in written if page.startswith("source/") and page.endswith(".py.md")]
        assert shown
        for page in shown:
            assert text_of(page.removeprefix("source/").removesuffix(".md")).rstrip() in written[page]

    def test_every_page_has_its_place_in_the_navigation(self) -> None:
        guide = ["guide/new", "guide/first-gradient", "guide/calls/b", "guide/calls/a"]
        listed = assemble.navigation(["index", "wire", "new", "adr/0001", *guide])
        assert [line for line in listed.splitlines() if line and line[0] not in "`:"] == [
            "guide/first-gradient", "guide/calls/a", "guide/calls/b",
            "wire", "ops/index", "errors/index",
            "guide/new",
            "new",
        ]  # fmt: skip
        with pytest.raises(ValueError, match="deep/er/page"):
            assemble.navigation(["deep/er/page"])


class TestCheck:
    """The check of what was built notices what it is for."""

    @pytest.mark.parametrize(
        ("html", "fault"),
        [
            ('<script src="https://cdn.example/x.js"></script>', "another host"),
            ('<link rel="stylesheet" href="//fonts.example/x.css">', "another host"),
            ('<img src="http://pictures.example/x.png">', "another host"),
            ('<a href="nothing.html">a</a>', "leads nowhere"),
            ('<a href="#nothing">a</a>', "leads nowhere"),
            ('<a href="other.html#nothing">a</a>', "leads nowhere"),
            ('<a href="../outside.html">a</a>', "leads nowhere"),
            ('<img src="nothing.svg">', "leads nowhere"),
            ('<a href="http://example.com">a</a>', "leads nowhere"),
            ('<a href="https:/example">a</a>', "leads nowhere"),
        ],
    )
    def test_a_fault(self, tmp_path: Path, html: str, fault: str) -> None:
        assert any(fault in found for found in self.faults(tmp_path, html))

    @pytest.mark.parametrize(
        "html",
        [
            '<a href="other.html#there">a</a><a href="#here" id="here">a</a><a href="">a</a>',
            '<a href="https://example.com/page#x">a</a><img src="data:image/png;base64,AA==">',
        ],
    )
    def test_what_is_right(self, tmp_path: Path, html: str) -> None:
        assert self.faults(tmp_path, html) == []

    def test_a_style_that_fetches(self, tmp_path: Path) -> None:
        (tmp_path / "x.css").write_text("@font-face { src: url(https://fonts.example/x.woff2) }", encoding="utf-8")
        assert check.faults(tmp_path) == ["x.css: url(http comes from another host"]

    def faults(self, site: Path, html: str) -> list[str]:
        (site / "outside.html").write_text("", encoding="utf-8")
        (site / "in").mkdir()
        (site / "in/other.html").write_text('<h2 id="there">a</h2>', encoding="utf-8")
        (site / "in/page.html").write_text(html, encoding="utf-8")
        return check.faults(site / "in")
