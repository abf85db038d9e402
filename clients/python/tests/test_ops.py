"""The generated methods of ops match the registry, and the check detects drift."""

from __future__ import annotations

from pathlib import Path

from clients.ops import CLIENTS, files, stale


def test_generated_files_are_current() -> None:
    assert stale(files()) == []


def test_drift_is_detected(tmp_path: Path) -> None:
    text = files()[CLIENTS / "python" / "gradserve_client" / "generated" / "ops.py"]
    (tmp_path / "ops.py").write_text(text.replace("softmax", "hardmax"), encoding="utf-8")
    assert stale({tmp_path / "ops.py": text}) == [tmp_path / "ops.py"]
    assert stale({tmp_path / "absent.py": text}) == [tmp_path / "absent.py"]
