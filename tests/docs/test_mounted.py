"""The application that docs/deploy.md has gradserve in is the example that the tests start."""

from __future__ import annotations

from tests.docs.marked import ROOT, blocks


def test_the_application_of_the_page_is_the_example() -> None:
    (shown,) = blocks("docs/deploy.md", "mounted")
    assert shown.strip() in (ROOT / "examples" / "mounted.py").read_text(encoding="utf-8")
