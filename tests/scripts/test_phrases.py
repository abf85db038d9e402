"""Banned phrases: which texts are checked, and that the repository has none."""

from __future__ import annotations

import shutil

import pytest

from scripts import phrases

WRITE = 'write "again, a second time"'


def test_docstring_phrase_is_reported() -> None:
    text = 'def call():\n    """Call.\n\n    If that fails, call once\n    more.\n    """\n'
    assert list(phrases.hits("engine/a.py", text)) == [f'engine/a.py:4: "once more": {WRITE}']


def test_message_phrase_is_reported() -> None:
    text = '# once more\nraise ValueError(f"{name} is sent once more")\n'
    assert list(phrases.hits("engine/a.py", text)) == [f'engine/a.py:2: "once more": {WRITE}']


def test_page_phrase_is_reported() -> None:
    assert list(phrases.hits("docs/a.md", "# A\n\nCall it Once\n  more.\n")) == [f'docs/a.md:3: "Once more": {WRITE}']


def test_page_code_is_skipped() -> None:
    text = "# A\n\n```text\nonce more\n```\n\n- b:\n\n  ```\n  once more\n  ```\n\nSay `once more`, once more.\n"
    assert list(phrases.hits("docs/a.md", text)) == [f'docs/a.md:13: "once more": {WRITE}']


def test_only_title_of_decision_record_is_checked() -> None:
    assert len(list(phrases.hits("docs/adr/0001-a.md", "# Once more\n\nOnce more.\n"))) == 1


@pytest.mark.parametrize("text", ["a gradient by the node", "gradient by gradient", "gradients by the names of inputs"])
def test_exempt_texts_are_not_reported(text: str) -> None:
    assert not list(phrases.hits("docs/a.md", text))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git, which lists the files, is not installed")
def test_repository_has_no_banned_phrases(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"README.md", "scripts/phrases.py", "docs/wire.md"} <= set(phrases.tracked())
    assert phrases.main() == 0, capsys.readouterr().out
