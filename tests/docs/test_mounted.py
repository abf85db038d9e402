"""The application that docs/deploy.md has gradserve in is the one that the tests start."""

from __future__ import annotations

from tests.docs.marked import ROOT, blocks


def test_the_application_of_the_page_is_the_one_that_is_started() -> None:
    (shown,) = blocks("docs/deploy.md", "mounted")
    assert shown.strip() in (ROOT / "deploy" / "mounted.py").read_text(encoding="utf-8")
