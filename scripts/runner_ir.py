"""Compile the C source of the runner to LLVM IR with clang."""

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
IR_FILE: Final = SOURCE.parent / "generated" / "runner.ll"
#: version of LLVM that makes the IR, which every later version reads
VERSION: Final = 19
_STRUCTURES: Final = (StepEntry, WatchEntry, PoolEntry, InitEntry, MoveEntry, CarryEntry, StackEntry, LoopEntry)
#: options for code that runs on every x86-64 processor, calls no library, and keeps its loops as written
_OPTIONS: Final = (
    *("--target=x86_64-linux-gnu", "-std=c11", "-O2", "-ffreestanding", "-fno-builtin", "-fwrapv"),
    *("-Wall", "-Wextra", "-Wconversion", "-Werror", "-fno-strict-aliasing", "-fno-finite-loops"),
    *("-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize", "-fno-stack-protector"),
    *("-fno-asynchronous-unwind-tables", "-fno-ident", "-Xclang", "-disable-lifetime-markers"),
    *("-S", "-emit-llvm", "-x", "c", "-", "-o", "-"),
)


def source() -> str:
    """Return the C source between the layout's numbers, as macros, and assertions of its structures' layouts."""
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
    """Return the hash of the source and options, which the IR contains."""
    return hashlib.sha256(f"{source()}{_OPTIONS}".encode()).hexdigest()


def compiled(command: str) -> str:
    """Return the module made by a compiler, without anything of the machine or compiler. Raises CalledProcessError."""
    output = subprocess.run([command, *_OPTIONS], input=source(), capture_output=True, text=True, check=True).stdout
    lines = [line for line in output.splitlines() if not re.match(r"; |source_filename|target |![\w.]+ = ", line)]
    text = re.sub(r"attributes (#\d+) = \{.*\}", _attributes, "\n".join(lines).strip())
    text = re.sub(r", !\S+ !\d+| +; preds = .*|\b(dso_local|local_unnamed_addr|nocapture|noundef) ", "", text)
    return f"; made of runner.c by scripts/runner_ir.py: {digest()}\n{text}\n"


def compiler() -> str | None:
    """Return the installed compiler of VERSION, or None."""
    for name in (f"clang-{VERSION}", "clang"):
        if shutil.which(name):
            version = subprocess.run([name, "-dumpversion"], capture_output=True, text=True, check=True).stdout
            if version.split(".")[0] == str(VERSION):
                return name
    return None


def _places(structure: type[IntEnum]) -> list[str]:
    """Return assertions that fields lie where the layout says."""
    name = structure.__name__.removesuffix("Entry").lower()
    offsets = [(f"__builtin_offsetof(struct {name}, {entry.name.lower()})", entry) for entry in structure]
    offsets[-1] = (f"sizeof(struct {name})", structure["SIZE"])
    return [f'_Static_assert({offset} == {8 * entry}, "{entry.name}");' for offset, entry in offsets]


def _attributes(match: re.Match[str]) -> str:
    """Keep only the attributes that C throws no exceptions and that a function is not inlined.

    The other attributes depend on the compiler or the machine.
    """
    return f"attributes {match[1]} = {{ nounwind{' noinline' if ' noinline ' in match[0] else ''} }}"


def main(arguments: list[str] | None = None) -> None:
    """Write `engine/codegen/native/generated/runner.ll`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args(arguments)
    command = compiler()
    if command is None:
        parser.error(f"clang {VERSION} is not installed")
    IR_FILE.write_text(compiled(command))


if __name__ == "__main__":
    main()
