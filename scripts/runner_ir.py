"""Make the runner's LLVM IR of its C source, by clang."""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
from enum import IntEnum
from pathlib import Path
from typing import Final

from engine.codegen.native import native_call as runner_layout
from engine.codegen.native.native_call import (
    CarryEntry,
    InitEntry,
    LoopEntry,
    MoveEntry,
    PoolEntry,
    StackEntry,
    StepEntry,
    WatchEntry,
)

SOURCE: Final = Path(runner_layout.__file__).with_name("runner.c")
KEPT: Final = SOURCE.parent / "generated" / "runner.ll"
#: of LLVM, what the IR is made by: every later one reads it
VERSION: Final = 19
_STRUCTURES: Final = (StepEntry, WatchEntry, PoolEntry, InitEntry, MoveEntry, CarryEntry, StackEntry, LoopEntry)
#: code for every processor of the family, no call of a library, loops as they are written
_OPTIONS: Final = (
    *("--target=x86_64-linux-gnu", "-std=c11", "-O2", "-ffreestanding", "-fno-builtin", "-fwrapv"),
    *("-Wall", "-Wextra", "-Wconversion", "-Werror", "-fno-strict-aliasing", "-fno-finite-loops"),
    *("-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize", "-fno-stack-protector"),
    *("-fno-asynchronous-unwind-tables", "-fno-ident", "-Xclang", "-disable-lifetime-markers"),
    *("-S", "-emit-llvm", "-x", "c", "-", "-o", "-"),
)


def source() -> str:
    """The C source, with the numbers of the layout before it, and the places of all that it declares after it."""
    numbers = {
        "MOST_HELPERS": runner_layout.MOST_HELPERS,
        "MOST_AXES": runner_layout.MOST_AXES,
        "NEVER_COMES": runner_layout.NEVER_COMES,
        "CLOSED": runner_layout.CLOSED,
        "STEP_SIZE": StepEntry.SIZE.value,
    }
    defined = [f"#define {name} {value}" for name, value in numbers.items()]
    compared = [line for structure in _STRUCTURES for line in _places(structure)]
    return "\n".join([*defined, SOURCE.read_text(), *compared, ""])


def digest() -> str:
    """What the IR says it was made of."""
    return hashlib.sha256(f"{source()}{_OPTIONS}".encode()).hexdigest()


def made(by: str) -> str:
    """The module by a compiler, with nothing in it of the machine or of that. Raises CalledProcessError."""
    found = subprocess.run([by, *_OPTIONS], input=source(), capture_output=True, text=True, check=True).stdout
    kept = [line for line in found.splitlines() if not re.match(r"; |source_filename|target |![\w.]+ = ", line)]
    text = re.sub(r"attributes (#\d+) = \{.*\}", _attributes, "\n".join(kept).strip())
    text = re.sub(r", !\S+ !\d+| +; preds = .*|\b(dso_local|local_unnamed_addr|nocapture|noundef) ", "", text)
    return f"; made of runner.c by scripts/runner_ir.py: {digest()}\n{text}\n"


def compiler() -> str | None:
    """The compiler of VERSION that is installed here, if there is one."""
    for name in (f"clang-{VERSION}", "clang"):
        if shutil.which(name):
            found = subprocess.run([name, "-dumpversion"], capture_output=True, text=True, check=True).stdout
            if found.split(".")[0] == str(VERSION):
                return name
    return None


def _places(structure: type[IntEnum]) -> list[str]:
    """Assertions that the fields lie where the words of a structure say."""
    name = structure.__name__.removesuffix("Entry").lower()
    places = [(f"__builtin_offsetof(struct {name}, {entry.name.lower()})", entry) for entry in structure]
    places[-1] = (f"sizeof(struct {name})", structure["SIZE"])
    return [f'_Static_assert({place} == {8 * entry}, "{entry.name}");' for place, entry in places]


def _attributes(found: re.Match[str]) -> str:
    """That C throws nothing, and what is not to be inlined: the rest is the compiler's own, or the machine's."""
    return f"attributes {found[1]} = {{ nounwind{' noinline' if ' noinline ' in found[0] else ''} }}"


def main(arguments: list[str] | None = None) -> None:
    """Write `engine/codegen/native/generated/runner.ll`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args(arguments)
    found = compiler()
    if found is None:
        parser.error(f"clang {VERSION} is not installed")
    KEPT.write_text(made(found))


if __name__ == "__main__":
    main()
