"""The pages of the site: one for every op and code, with links rewritten between pages."""

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
    """Op pages and their examples."""

    @together
    @pytest.mark.parametrize("name", OPS)
    def test_example_matches_server_answer(self, client: Client, op_pages: dict[str, str], name: str) -> None:
        call, body, shown = ops.read_back(op_pages[ops.place_of(name)])
        answer = client.post(f"/v1/{call}", json=body)
        assert answer.status_code == 200, answer.text
        assert same(shown, without_stats(answer.json()))
        assert name in {node["op"] for node in body["graph"]["nodes"]}

    @together
    @pytest.mark.parametrize("name", OPS)
    def test_python_example_sends_same_request(self, op_pages: dict[str, str], name: str) -> None:
        """Compare the request of the Python program with that of the command."""
        call, body, _ = ops.read_back(op_pages[ops.place_of(name)])
        (program,) = re.findall(r"```python\n(.*?)\n```", op_pages[ops.place_of(name)], re.DOTALL)
        compile(program, name, "exec")
        assert f"/v1/{call}" in program
        (sent,) = re.findall(r"r'''(.*?)'''", program, re.DOTALL)
        assert json.loads(sent) == body

    @together
    @pytest.mark.parametrize("name", OPS)
    def test_example_answer_has_values(self, op_pages: dict[str, str], name: str) -> None:
        call, _, shown = ops.read_back(op_pages[ops.place_of(name)])
        assert shown["values"][0]["tensor"]["data"]
        gradient_doc = registry().ops[name].gradient
        assert (call == "gradients") == (name == "parameter" or not gradient_doc.startswith("none"))

    def test_index_lists_every_op_once(self, op_pages: dict[str, str]) -> None:
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
    def test_section_heading(self, text: str, heading: tuple[str, str]) -> None:
        assert ops.heading(text) == heading

    def test_rejected_sample_raises(self) -> None:
        worker = Worker(Settings(device="cpu"))
        with pytest.raises(RuntimeError, match="takes 2 operands"):
            examples._ask(registry().ops["add"], {"graph": {"nodes": [{"op": "add"}]}}, worker)


class TestCodes:
    """Error code pages."""

    def test_code_pages_are_complete(self) -> None:
        pages = code_pages()
        assert sorted(pages) == sorted(["errors/index.md", *(f"errors/{code}.md" for code in KINDS)])
        for code, (meaning, remedy) in EXPLANATIONS.items():
            assert prose(meaning) in pages[f"errors/{code}.md"]
            assert prose(remedy) in pages[f"errors/{code}.md"]
            assert f"]({code}.md)" in pages["errors/index.md"]
            assert f"\n# {code}\n" in pages[f"errors/{code}.md"]
            assert "\n## What to do\n" in pages[f"errors/{code}.md"]
            reserved = "\n## Example\n" not in pages[f"errors/{code}.md"]
            assert ("\n\nReserved: no call returns it yet.\n\n" in pages[f"errors/{code}.md"]) == reserved
            assert ("\n## Where\n" in pages[f"errors/{code}.md"]) != reserved

    def test_server_link_becomes_text(self) -> None:
        assert prose("see [the calls](/docs), [here](x.md)") == "see the calls (`/docs` on the server), [here](x.md)"


class TestAssembly:
    """Rewriting of links between files to links between pages."""

    def rewrite_links(self, text: str, source: str = "docs/guide/new.md") -> tuple[str, list[str]]:
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
    def test_page_link_is_rewritten(self, link: str, target: str) -> None:
        assert self.rewrite_links(f"[a]({link})") == (f"[a]({target})", [])

    def test_file_link_targets_source_page(self) -> None:
        assert self.rewrite_links("[a](../../engine/__init__.py)") == (
            "[a](../source/engine/__init__.py.md)",
            ["engine/__init__.py"],
        )
        assert self.rewrite_links("[a](../../tests/spec/)") == ("[a](../source/tests/spec.md)", ["tests/spec"])

    def test_fenced_link_is_unchanged(self) -> None:
        assert self.rewrite_links("```text\n[a](../ops.md)\n```\n[a](../ops.md)")[0].splitlines() == [
            "```text", "[a](../ops.md)", "```", "[a](../ops/index.md)",
        ]  # fmt: skip

    def test_link_to_missing_file_is_rejected(self) -> None:
        with pytest.raises(ValueError, match=r"new\.md refers to nothing\.py"):
            self.rewrite_links("[a](nothing.py)")

    def test_source_pages_show_whole_files(self, written: dict[str, str]) -> None:
        shown = [page for page in written if page.startswith("source/") and page.endswith(".py.md")]
        assert shown
        for page in shown:
            assert text_of(page.removeprefix("source/").removesuffix(".md")).rstrip() in written[page]

    def test_navigation_places_every_page(self) -> None:
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
    """Check of the built site."""

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
    def test_fault_is_reported(self, tmp_path: Path, html: str, fault: str) -> None:
        assert any(fault in message for message in self.faults(tmp_path, html))

    @pytest.mark.parametrize(
        "html",
        [
            '<a href="other.html#there">a</a><a href="#here" id="here">a</a><a href="">a</a>',
            '<a href="https://example.com/page#x">a</a><img src="data:image/png;base64,AA==">',
        ],
    )
    def test_valid_html_has_no_faults(self, tmp_path: Path, html: str) -> None:
        assert self.faults(tmp_path, html) == []

    def test_external_font_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "x.css").write_text("@font-face { src: url(https://fonts.example/x.woff2) }", encoding="utf-8")
        assert check.faults(tmp_path) == ["x.css: url(http comes from another host"]

    def faults(self, site: Path, html: str) -> list[str]:
        (site / "outside.html").write_text("", encoding="utf-8")
        (site / "in").mkdir()
        (site / "in/other.html").write_text('<h2 id="there">a</h2>', encoding="utf-8")
        (site / "in/page.html").write_text(html, encoding="utf-8")
        return check.faults(site / "in")
