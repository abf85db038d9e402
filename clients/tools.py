"""Tools of other languages, which a machine has or lacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterable


def lacking(needs: Iterable[str]) -> list[str]:
    """Those of these commands that this machine lacks."""
    return [name for name in needs if shutil.which(name) is None]
