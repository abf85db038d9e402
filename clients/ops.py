"""Generate the typed op methods of the clients from the registry; with --check, report stale files instead.

python -m clients.ops [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from clients.op_descriptions import OpDescription, described
from clients.printers import cpp, go, java, python, rust, typescript
from engine import registry

CLIENTS: Final = Path(__file__).parent
_JAVA: Final = CLIENTS / "java" / "src"
_JAVA_PACKAGE: Final = Path("generated", "example", "gradserve")
#: generated files, with the functions that print them
PRINTERS: Final[Mapping[Path, Callable[[Sequence[OpDescription]], str]]] = {
    CLIENTS / "cpp" / "include" / "gradserve" / "generated" / "ops.hpp": cpp.header,
    CLIENTS / "cpp" / "src" / "generated" / "ops.cpp": cpp.source,
    CLIENTS / "cpp" / "conformance" / "generated" / "ops.cpp": cpp.program,
    CLIENTS / "go" / "ops.go": go.methods,
    CLIENTS / "go" / "cmd" / "conformance" / "ops.go": go.program,
    _JAVA / "main" / _JAVA_PACKAGE / "GraphOps.java": java.of_graphs,
    _JAVA / "main" / _JAVA_PACKAGE / "NodeOps.java": java.of_nodes,
    _JAVA / "test" / _JAVA_PACKAGE / "conformance" / "Ops.java": java.program,
    CLIENTS / "python" / "gradserve_client" / "generated" / "ops.py": python.printed,
    CLIENTS / "rust" / "examples" / "conformance" / "generated" / "ops.rs": rust.program,
    CLIENTS / "rust" / "src" / "generated" / "ops.rs": rust.methods,
    CLIENTS / "typescript" / "src" / "generated" / "ops.ts": typescript.printed,
    CLIENTS / "typescript" / "generated" / "signatures.ts": typescript.signatures,
}


def files() -> dict[Path, str]:
    """Return the expected content of each file."""
    ops = described(registry())
    return {path: printed(ops) for path, printed in PRINTERS.items()}


def stale(expected: Mapping[Path, str]) -> list[Path]:
    """Return the files whose content differs from the expected one."""
    return [path for path, text in expected.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]


def main() -> None:
    """Write stale files, or with --check only name them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not current")
    check, expected = parser.parse_args().check, files()
    for path in stale(expected):
        print(f"{path.relative_to(CLIENTS.parent)} is {'not current' if check else 'written'}")
        if not check:
            path.write_text(expected[path], encoding="utf-8")
    sys.exit(check and bool(stale(expected)))


if __name__ == "__main__":
    main()
