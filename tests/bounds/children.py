"""Parts of the corpus, each watched in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.bounds.corpus import groups
from tests.engine.codegen.kernels.c_compiler import COMPILER

ROOT: Final = Path(__file__).parents[2]
#: numbers of processes for the samples of ops, networks, and random graphs
SHARES: Final = {"op ": 8, "network ": 6, "random ": 20}
#: vector widths in bytes: kernels of any width run on every processor
WIDTHS: Final = (32, 64)
#: languages of other printers; and groups whose graphs have all kinds of kernels
TEXTS: Final = ("c", "cuda")
LOOPS: Final = ("far arguments", "op softmax", "op sum", "op layer_norm", "op where", "op cumsum", "op mod", "random 0")


class Outcome(NamedTuple):
    """The output lines of a process, and if it died, how and where."""

    lines: Sequence[str]
    died: str

    @property
    def checked(self) -> list[str]:
        """The findings of kernels that check bounds."""
        return [line for line in self.lines if ", checked: " in line]


def watched(names: Sequence[str], folder: Path, *options: str) -> Outcome:
    """Watch groups of the corpus in a process, and return its findings. The process must end with a summary."""
    journal = folder / "journal"
    command = [sys.executable, "-m", "tests.bounds.child", str(journal), *names, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    *lines, last = done.stdout.splitlines() or [""]
    if done.returncode < 0:
        return Outcome(done.stdout.splitlines(), f"{signal.Signals(-done.returncode).name} at {journal.read_text()}")
    assert last.endswith(" s"), f"at {journal.read_text()}: {done.stderr}"
    assert done.returncode == int(bool(lines))
    sys.stdout.write(last + "\n")
    return Outcome(lines, "")


def parts() -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Groups and options by name, split so that all processes have similar work."""
    names = list(groups())
    by_name: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    for kind, count in SHARES.items():
        chosen = [name for name in names if name.startswith(kind)]
        by_name |= {f"{kind}{i} of {count}": (chosen[i::count], ()) for i in range(count)}
    kernels = [name for name in names if not name.startswith(tuple(SHARES))]
    by_name |= {f"kernels of {width} bytes": (kernels, ("--lanes-of", str(width))) for width in WIDTHS}
    loops = [name for name in names if name.startswith("kernels of ") or name in LOOPS]
    return by_name | {f"text of {text}": (loops, ("--text", text)) for text in (TEXTS if COMPILER else ())}
