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
#: processes that share ops' samples, networks, and random graphs
SHARES: Final = {"op ": 8, "network ": 6, "random ": 20}
#: bytes of the vectors of processors: kernels of a width run on all, as what they have
WIDTHS: Final = (32, 64)
#: what other printers write; and groups whose graphs have loops of all kinds, of few kernels
TEXTS: Final = ("c", "cuda")
LOOPS: Final = ("far arguments", "op softmax", "op sum", "op layer_norm", "op where", "op cumsum", "op mod", "random 0")


class Found(NamedTuple):
    """What a process said, a line each; and of one that died how, and at what."""

    said: Sequence[str]
    died: str

    @property
    def checked(self) -> list[str]:
        """What kernels wrote down."""
        return [line for line in self.said if ", checked: " in line]


def watched(names: Sequence[str], folder: Path, *options: str) -> Found:
    """What is found in groups of the corpus; nothing where all is well. The process has to come to an end it knows."""
    journal = folder / "journal"
    command = [sys.executable, "-m", "tests.bounds.child", str(journal), *names, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    *said, last = done.stdout.splitlines() or [""]
    if done.returncode < 0:
        return Found(done.stdout.splitlines(), f"{signal.Signals(-done.returncode).name} at {journal.read_text()}")
    assert last.endswith(" s"), f"at {journal.read_text()}: {done.stderr}"
    assert done.returncode == int(bool(said))
    sys.stdout.write(last + "\n")
    return Found(said, "")


def parts() -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Groups and options by a name, of so much each that several processes have as much to do."""
    names = list(groups())
    found: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    for kind, count in SHARES.items():
        chosen = [name for name in names if name.startswith(kind)]
        found |= {f"{kind}{i} of {count}": (chosen[i::count], ()) for i in range(count)}
    kernels = [name for name in names if not name.startswith(tuple(SHARES))]
    found |= {f"kernels of {width} bytes": (kernels, ("--lanes-of", str(width))) for width in WIDTHS}
    loops = [name for name in names if name.startswith("kernels of ") or name in LOOPS]
    return found | {f"text of {text}": (loops, ("--text", text)) for text in (TEXTS if COMPILER else ())}
