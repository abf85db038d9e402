"""The mounted application of docs/deploy.md against the one that the tests start."""

from __future__ import annotations

from tests.docs.marked import ROOT, blocks


def test_mounted_application_matches_page() -> None:
    (shown,) = blocks("docs/deploy.md", "mounted")
    assert shown.strip() in (ROOT / "deploy" / "mounted.py").read_text(encoding="utf-8")
