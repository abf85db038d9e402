"""Tools of other languages, which a machine has or lacks."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

#: how libraries are told from commands: by the file in which pkg-config reads of them
_LIBRARY: Final = ".pc"


class Failed(Exception):
    """A command ended in another way than it should, with what it said."""


def lacking(needs: Iterable[str]) -> list[str]:
    """Those of these commands, and libraries such as `libcurl.pc`, that this machine lacks."""
    return [name for name in needs if not (_has_library(name) if name.endswith(_LIBRARY) else shutil.which(name))]


def _has_library(name: str) -> bool:
    if shutil.which("pkg-config") is None:
        return False
    command = ["pkg-config", "--exists", name.removesuffix(_LIBRARY)]
    return subprocess.run(command, check=False).returncode == 0


def command(line: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints, with `environment` beside this process's. Raises Failed where its status is not 0."""
    words, variables = shlex.split(line), {**os.environ, **(environment or {})}
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"`{line}` ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout
