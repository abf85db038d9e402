"""Banned phrases: where they are looked for, and that there are none."""

from __future__ import annotations

import shutil

import pytest

from scripts import phrases

WRITE = 'write "again, a second time"'


def test_a_phrase_in_a_docstring_is_found() -> None:
    text = 'def call():\n    """Call.\n\n    If that fails, call once\n    more.\n    """\n'
    assert list(phrases.hits("engine/a.py", text)) == [f'engine/a.py:4: "once more": {WRITE}']


def test_a_phrase_in_a_message_is_found() -> None:
    text = '# once more\nraise ValueError(f"{name} is sent once more")\n'
    assert list(phrases.hits("engine/a.py", text)) == [f'engine/a.py:2: "once more": {WRITE}']


def test_a_phrase_in_a_page_is_found() -> None:
    assert list(phrases.hits("docs/a.md", "# A\n\nCall it Once\n  more.\n")) == [f'docs/a.md:3: "Once more": {WRITE}']


def test_code_in_a_page_is_skipped() -> None:
    text = "# A\n\n```text\nonce more\n```\n\n- b:\n\n  ```\n  once more\n  ```\n\nSay `once more`, once more.\n"
    assert list(phrases.hits("docs/a.md", text)) == [f'docs/a.md:13: "once more": {WRITE}']


def test_only_the_title_of_a_decision_is_read() -> None:
    assert len(list(phrases.hits("docs/adr/0001-a.md", "# Once more\n\nOnce more.\n"))) == 1


@pytest.mark.parametrize("text", ["a gradient by the node", "gradient by gradient", "gradients by the names of inputs"])
def test_served_and_correct_texts_are_spared(text: str) -> None:
    assert not list(phrases.hits("docs/a.md", text))


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git, which lists the files")
def test_the_repository_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"README.md", "scripts/phrases.py", "docs/wire.md"} <= set(phrases.tracked())
    assert phrases.main() == 0, capsys.readouterr().out
