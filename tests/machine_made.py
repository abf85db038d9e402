"""What `.gitattributes` says of files: whether they are machine-made."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.copied_tree import ROOT


def by_hand(names: Iterable[str], empty: Path) -> list[str]:
    """Those of these files that are not marked as linguist-generated, as git says in an empty folder."""
    subprocess.run(["git", "init", "--quiet"], cwd=empty, check=True)
    shutil.copy(ROOT / ".gitattributes", empty)
    asked = subprocess.run(
        ["git", "check-attr", "--stdin", "linguist-generated"],
        cwd=empty, input="\n".join(names), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return sorted(line.split(":")[0] for line in asked.stdout.splitlines() if line.endswith(": unspecified"))
