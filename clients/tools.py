"""External tools, which a machine has or lacks."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

#: suffix that distinguishes libraries, named by their pkg-config files, from commands
_LIBRARY: Final = ".pc"


class Failed(Exception):
    """A command failed; the message has its output."""


def lacking(needs: Iterable[str]) -> list[str]:
    """Return those of the needed commands, and libraries such as `libcurl.pc`, that this machine lacks."""
    return [name for name in needs if not (_has_library(name) if name.endswith(_LIBRARY) else shutil.which(name))]


def _has_library(name: str) -> bool:
    if shutil.which("pkg-config") is None:
        return False
    command = ["pkg-config", "--exists", name.removesuffix(_LIBRARY)]
    return subprocess.run(command, check=False).returncode == 0


def command(line: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output.

    `environment` extends this process's. Raises Failed unless its status is 0.
    """
    words, variables = shlex.split(line), {**os.environ, **(environment or {})}
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"`{line}` ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout
