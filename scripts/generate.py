"""Make every generated file of the repository; with --check, report stale files instead.

A generated file is in a folder named `generated`, or `.gitattributes` marks it as `linguist-generated`. Each row of
`MAKERS` generates some of them:

    row                         from                                   needs
    polynomials                 minimax fits
    op methods of the clients   the op registry
    conformance cases           the registry, clients/conformance
    drawings                    graphs of the docs                     Node, --packages
    pages and documents         the registry, calls, docstrings
    native runner               engine/codegen/native/runner.c         clang 19, if that has changed
    playground                  playground/src, TypeScript's client    Node, --packages

The rows run in this order, because pages show drawings, and the reference of the Python client reads its op methods. A
row whose tool is missing is skipped and reported. Not included: tables of measurements (`make docs`, `make bench`),
models that PyTorch, JAX and ONNX export (`make gallery`), and lock files, which depend on a package index (`make
lock`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from clients import ops
from clients.conformance import make as conformance
from scripts import bessel_coefficients, build_docs, coefficients, runner_ir
from scripts.build_docs import ROOT
from scripts.drawings.__main__ import drawings, pictures, superfluous

#: text of each file by its path, None for an obsolete file
Files = Mapping[Path, str | None]


class MissingToolError(Exception):
    """A maker needs a tool that this machine lacks."""


def polynomials() -> Files:
    """Fit the polynomials of the elementary and special functions."""
    return {coefficients.FILE: coefficients.module(), bessel_coefficients.FILE: bessel_coefficients.module()}


def native_runner() -> Files:
    """Compile the runner's C source to LLVM IR."""
    compiler = runner_ir.compiler()
    if compiler:
        return {runner_ir.IR_FILE: runner_ir.compiled(compiler)}
    if runner_ir.digest() not in runner_ir.IR_FILE.read_text("ascii"):
        sys.exit(f"native runner: runner.c has changed, and clang {runner_ir.VERSION} is not installed")
    return {}


def drawn_graphs(packages: Path | None) -> Files:
    """Draw the graphs of the docs with the playground's module."""
    if packages is None:
        raise MissingToolError("Node")
    drawn = list(drawings())
    return {**pictures(drawn, packages), **dict.fromkeys(superfluous(drawn))}


MAKERS: Final[Mapping[str, Callable[[Path | None], Files]]] = {
    "polynomials": lambda _: polynomials(),
    "op methods of the clients": lambda _: ops.files(),
    "conformance cases": lambda _: conformance.files(),
    "drawings": drawn_graphs,
    "pages and documents": lambda _: build_docs.pages(),
    "native runner": lambda _: native_runner(),
}


def main() -> int:
    """Write stale files; with --check, name them and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="scripts.generate", description="Make every machine-made file.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not current")
    parser.add_argument("--packages", type=Path, help="the folder with node_modules, for drawings and the playground")
    options = parser.parse_args()
    is_current = True
    for name in MAKERS:
        is_current &= bring_up_to_date(name, options.packages, check=options.check)
    if options.packages is None:
        print("playground: skipped, this needs Node")
    else:
        command = ["node", "playground/build.mjs", str(options.packages), *(["--check"] if options.check else [])]
        is_current &= subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode == 0
    return 0 if is_current or not options.check else 1


def bring_up_to_date(name: str, packages: Path | None, *, check: bool) -> bool:
    """Write the stale files of a row, or with `check` only name them. Return whether all were current."""
    try:
        expected = MAKERS[name](packages)
    except MissingToolError as missing:
        print(f"{name}: skipped, this needs {missing}", flush=True)
        return True
    outdated = [
        path for path, text in expected.items() if text != (path.read_text("utf-8") if path.is_file() else None)
    ]
    for path in outdated:
        print(f"{name}: {path.relative_to(ROOT)} {'is not current' if check else 'is written'}", flush=True)
        text = expected[path]
        if check:
            continue
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return not outdated


if __name__ == "__main__":
    sys.exit(main())
