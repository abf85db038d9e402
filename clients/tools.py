"""Tools of other languages, which a machine has or lacks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from typing import Final

#: how libraries are told from commands: by the file in which pkg-config reads of them
_LIBRARY: Final = ".pc"


def lacking(needs: Iterable[str]) -> list[str]:
    """Those of these commands, and libraries such as `libcurl.pc`, that this machine lacks."""
    return [name for name in needs if not (_has_library(name) if name.endswith(_LIBRARY) else shutil.which(name))]


def _has_library(name: str) -> bool:
    if shutil.which("pkg-config") is None:
        return False
    command = ["pkg-config", "--exists", name.removesuffix(_LIBRARY)]
    return subprocess.run(command, check=False).returncode == 0  # noqa: S603 - of our tables
