"""Pages generated from the registry: current, complete, and checked for changes."""

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
def test_generated_pages_are_current() -> None:
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
    """Return the generated pages by file name."""
    return {path.name: text for path, text in build_docs.pages().items()}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_changed_page_is_stale(page: str, pages: dict[str, str], tmp_path: Path) -> None:
    written = {tmp_path / name: text for name, text in pages.items()}
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    assert build_docs.stale(written) == []
    drifted = tmp_path / page
    drifted.write_text(drifted.read_text(encoding="utf-8").replace("softmax", "hardmax"), encoding="utf-8")
    assert build_docs.stale(written) == [drifted]


def test_loop_drawing_shows_saved_and_recomputed_values() -> None:
    page = build_docs.LOOPS.read_text(encoding="utf-8")
    before, _, rest = page.partition(loop_picture.START)
    drawing, _, after = rest.partition(loop_picture.END)
    assert re.findall(r'\("(\S+): float64\[1000\], 8,000 bytes"\)', drawing) == ["y", "sin(y)"]
    assert re.findall(r'"(\w+)"\]:::again', drawing) == ["mul"]
    assert loop_picture.with_loops(f"{before}{loop_picture.START}{loop_picture.END}{after}") == page


def test_missing_page_is_stale(tmp_path: Path) -> None:
    assert build_docs.stale({tmp_path / "ops.md": ""}) == [tmp_path / "ops.md"]


def test_ops_page_lists_every_op_attribute_and_alias() -> None:
    page = build_docs.ops_page(describe(registry()))
    for name, op in registry().ops.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section, f"{name} has no section"
        absent = [word for word in (*op.attrs, *op.aliases) if f"`{word}`" not in section]
        assert not absent, f"the section of {name} lacks {absent}"


def test_porting_page_lists_aliases_by_system() -> None:
    page = build_docs.porting_page(describe(registry()), NOTES)
    for key, system in NOTES.items():
        section = page.partition(f"\n## {system['title']}\n")[2].partition("\n## ")[0]
        spelled = [
            s for op in registry().ops.values() for s, systems in op.aliases.items() if key in systems.split(", ")
        ]
        assert spelled
        assert not [spelling for spelling in spelled if f"`{spelling}`" not in section]


def test_coming_from_page_lists_names_by_system() -> None:
    page = build_docs.coming_from_page(familiar_ops(), familiar_systems())
    for key, title in familiar_systems().items():
        section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        rows = [row for row in section.splitlines() if row.startswith("| `")]
        for name, op, systems, note in familiar_ops():
            matching_rows = [row for row in rows if f"`{name}`" in row and f"(ops.md#{op})" in row]
            assert len(matching_rows) == (key in systems), f"{name} under {title}"
            assert all(note.replace("|", r"\|") in row for row in matching_rows)
    attributes = page.partition("\n## Attributes\n")[2]
    assert not [name for name in familiar_attributes() if f"| `{name}` |" not in attributes]


def test_python_page_documents_public_api() -> None:
    page = python_page.page_of_python()
    assert not [name for name in gradserve_client.__all__ if page.count(f"\n### {name}\n") != 1]
    for name in ("softmax", "mse_loss", "cat"):
        assert f"- [{name}](../ops.md#{name}): `{name}(" in page
    for words in (inspect.getdoc(gradserve_client.Client.put), inspect.getdoc(gradserve_client.Node)):
        assert words
        assert words in page
    assert "def put(name: str, array: ArrayLike, *, if_match: Resident | str | None = None, " in page


def test_note_on_unknown_op_is_rejected() -> None:
    notes = {"cjc": {**NOTES["cjc"], "notes": {"no_such_op": "…"}}}
    with pytest.raises(ValueError, match=r"cjc\.no_such_op"):
        build_docs.porting_page(describe(registry()), notes)


def test_every_alias_system_has_notes() -> None:
    systems = {s for op in registry().ops.values() for listed in op.aliases.values() for s in listed.split(", ")}
    assert systems == set(NOTES)


def test_table_escapes_pipes() -> None:
    assert build_docs.table(["a"], [["|x|"]]) == "| a |\n| --- |\n| \\|x\\| |\n"
