"""The pages that come from the registry are current, and the check that says so notices when they are not."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import gradserve_client
from engine import describe, registry
from engine.ir.spellings import familiar_attributes, familiar_ops, familiar_systems
from scripts import build_docs, loop_picture, python_page

NOTES: dict[str, Any] = tomllib.loads(build_docs.NOTES.read_text(encoding="utf-8"))
PAGES = ["ops.md", "porting.md", "coming-from.md", "python.md"]


@pytest.mark.smoke
@pytest.mark.slow
def test_the_pages_are_current() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "scripts.build_docs", "--check"],
        cwd=build_docs.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """What is written, by the names of the files."""
    return {path.name: text for path, text in build_docs.pages().items()}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_drift_is_noticed(page: str, pages: dict[str, str], tmp_path: Path) -> None:
    written = {tmp_path / name: text for name, text in pages.items()}
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    assert build_docs.stale(written) == []
    drifted = tmp_path / page
    drifted.write_text(drifted.read_text(encoding="utf-8").replace("softmax", "hardmax"), encoding="utf-8")
    assert build_docs.stale(written) == [drifted]


def test_the_drawing_of_a_loop_says_what_is_kept_and_what_is_computed_again() -> None:
    page = build_docs.LOOPS.read_text(encoding="utf-8")
    before, _, rest = page.partition(loop_picture.START)
    drawing, _, after = rest.partition(loop_picture.END)
    assert re.findall(r'\("(\S+): float64\[1000\], 8,000 bytes"\)', drawing) == ["y", "sin(y)"]
    assert re.findall(r'"(\w+)"\]:::again', drawing) == ["mul"]
    assert loop_picture.with_loops(f"{before}{loop_picture.START}{loop_picture.END}{after}") == page


def test_a_missing_page_is_noticed(tmp_path: Path) -> None:
    assert build_docs.stale({tmp_path / "ops.md": ""}) == [tmp_path / "ops.md"]


def test_the_reference_has_every_op_attribute_and_spelling() -> None:
    page = build_docs.ops_page(describe(registry()))
    for name, op in registry().ops.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section, f"{name} has no section"
        absent = [word for word in (*op.attrs, *op.aliases) if f"`{word}`" not in section]
        assert not absent, f"the section of {name} lacks {absent}"


def test_the_porting_guide_has_every_spelling_under_its_system() -> None:
    page = build_docs.porting_page(describe(registry()), NOTES)
    for key, system in NOTES.items():
        section = page.partition(f"\n## {system['title']}\n")[2].partition("\n## ")[0]
        spelled = [
            s for op in registry().ops.values() for s, systems in op.aliases.items() if key in systems.split(", ")
        ]
        assert spelled
        assert not [spelling for spelling in spelled if f"`{spelling}`" not in section]


def test_what_other_systems_call_an_op_is_under_their_title() -> None:
    page = build_docs.coming_from_page(familiar_ops(), familiar_systems())
    for key, title in familiar_systems().items():
        section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        rows = [row for row in section.splitlines() if row.startswith("| `")]
        for name, op, systems, note in familiar_ops():
            told = [row for row in rows if f"`{name}`" in row and f"(ops.md#{op})" in row]
            assert len(told) == (key in systems), f"{name} under {title}"
            assert all(note.replace("|", r"\|") in row for row in told)
    attributes = page.partition("\n## Attributes\n")[2]
    assert not [name for name in familiar_attributes() if f"| `{name}` |" not in attributes]


def test_the_page_of_the_python_client_has_all_that_is_public() -> None:
    page = python_page.page_of_python()
    assert not [name for name in gradserve_client.__all__ if page.count(f"\n### {name}\n") != 1]
    for name in ("softmax", "mse_loss", "cat"):
        assert f"- [{name}](../ops.md#{name}): `{name}(" in page
    for words in (inspect.getdoc(gradserve_client.Client.put), inspect.getdoc(gradserve_client.Node)):
        assert words
        assert words in page
    assert "def put(name: str, array: ArrayLike, *, if_match: Resident | str | None = None, " in page


def test_a_note_on_an_op_that_does_not_exist_is_refused() -> None:
    lost = {"cjc": {**NOTES["cjc"], "notes": {"no_such_op": "…"}}}
    with pytest.raises(ValueError, match=r"cjc\.no_such_op"):
        build_docs.porting_page(describe(registry()), lost)


def test_every_system_of_the_registry_has_a_section() -> None:
    systems = {s for op in registry().ops.values() for listed in op.aliases.values() for s in listed.split(", ")}
    assert systems == set(NOTES)


def test_a_bar_in_a_formula_does_not_break_the_table() -> None:
    assert build_docs.table(["a"], [["|x|"]]) == "| a |\n| --- |\n| \\|x\\| |\n"
