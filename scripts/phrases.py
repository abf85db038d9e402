"""Find phrases that read like a translation, in pages, docstrings and messages.

`scripts/phrases.txt` lists them, each with a replacement. Code in pages is skipped; of a decision record only the title
is read, and nothing of the changelog.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("engine", "service", "schemas", "scripts", "clients/python/gradserve_client")
_CODE: Final = re.compile(r"^ *(```+|~~~+).*?^ *\1|(`+)[^`].*?\2", re.MULTILINE | re.DOTALL)


@functools.cache
def phrases() -> dict[re.Pattern[str], str]:
    """Read the list. A space in a phrase matches a line break, too."""
    lines = (ROOT / "scripts" / "phrases.txt").read_text("utf-8").splitlines()
    rows = [re.split(r"\s{2,}|\t", line, maxsplit=1) for line in lines if line and not line.startswith("#")]
    return {re.compile(phrase.replace(" ", r"\s"), re.IGNORECASE): instead for phrase, instead in rows}


def prose(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a file that are prose, each with the number of its first line."""
    if name.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, node.value
    else:
        part = text.split("\n", 1)[0] if name.startswith("docs/adr/0") else text
        yield 1, _CODE.sub(lambda code: "`" + "\n" * code[0].count("\n"), part)


def hits(name: str, text: str) -> Iterator[str]:
    """Describe each phrase of the list that a file contains."""
    for first, part in prose(name, text):
        unindented = re.sub(r"[ \t]*\n[ \t]*", "\n", part)
        for phrase, instead in phrases().items():
            for hit in phrase.finditer(unindented):
                line, quoted = first + unindented.count("\n", 0, hit.start()), hit[0].strip().replace("\n", " ")
                yield f'{name}:{line}: "{quoted}": write "{instead}"'


def tracked() -> list[str]:
    """Return the names of the files that are checked."""
    command = ["git", "ls-files", "*.md", *(f"{package}/**.py" for package in PACKAGES)]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if "/generated/" not in name and name != "CHANGELOG.md"]


def main() -> int:
    """Print every hit. Return 1 if there is one."""
    lines = [hit for name in tracked() for hit in hits(name, (ROOT / name).read_text("utf-8"))]
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
