"""Pages whose marked blocks are one program, and how one of each language is made with the client of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.docs.marked import blocks

#: the server that pages speak of
LOCAL: Final = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Page:
    """A page: the blocks that are marked with the language, one behind the other, are what `source` has in it.

    Of several programs on a page, the marks of a later one end with its `part`, as `rust_functions`.
    """

    path: str
    language: str
    source: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.marked(self.language)}-{self.path}"

    def marked(self, kind: str) -> str:
        """The mark of a kind of its blocks."""
        return f"{kind}_{self.part}" if self.part else kind

    @property
    def program(self) -> str:
        """What `source` has in it."""
        return "\n".join(blocks(self.path, self.marked(self.language)))

    @property
    def shown(self) -> str:
        """What the page says that its program prints."""
        return "".join(blocks(self.path, self.marked("output")))


@dataclass(frozen=True)
class Project:
    """How a program is made of its source in a folder of its own, and what starts it with the server's address.

    `files` lie beside the source, by their names. `{client}` is the client's folder, `{source}` the name of the source.
    """

    start: Sequence[str]
    build: Sequence[Sequence[str]] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    #: commands that it needs beside those of the client
    needs: Sequence[str] = ()

    def printed(self, page: Page, client: Path, folder: Path, url: str) -> str:
        """What the page's program prints."""
        known = {"client": str(client), "source": page.source}
        for name, text in self.files.items():
            (folder / name).write_text(text.format(**known), encoding="utf-8")
        program = page.program.replace(LOCAL, url)
        (folder / page.source).write_text(program, encoding="utf-8")
        environment = os.environ | {name: value.format(**known) for name, value in self.environment.items()}
        for command in (*self.build, (*self.start, url)):
            words = [word.format(**known) for word in command]
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert not done.returncode, f"{' '.join(words)}:\n{done.stdout}{done.stderr}"
        return done.stdout


PAGES: Final = (
    Page("clients/README.md", "python", "ten_lines.py"),
    Page("clients/cpp/README.md", "cpp", "main.cpp"),
    Page("clients/cpp/README.md", "cpp", "main.cpp", "functions"),
    Page("clients/go/README.md", "go", "main.go"),
    Page("clients/java/README.md", "java", "Main.java"),
    Page("clients/java/README.md", "java", "Main.java", "functions"),
    Page("clients/python/README.md", "python", "ten_lines.py"),
    Page("clients/rust/README.md", "rust", "main.rs"),
    Page("clients/rust/README.md", "rust", "main.rs", "functions"),
    Page("clients/typescript/README.md", "typescript", "lines.ts"),
    Page("docs/guide/loops.md", "python", "loops.py"),
    Page("docs/guide/models.md", "python", "models.py"),
    Page("docs/guide/random.md", "python", "random_numbers.py"),
    Page("docs/guide/ten-minutes-cpp.md", "cpp", "main.cpp"),
    Page("docs/guide/ten-minutes-curl.md", "sh", "ten-minutes.sh"),
    Page("docs/guide/ten-minutes-go.md", "go", "main.go"),
    Page("docs/guide/ten-minutes-java.md", "java", "Main.java"),
    Page("docs/guide/ten-minutes-python.md", "python", "ten_minutes.py"),
    Page("docs/guide/ten-minutes-rust.md", "rust", "main.rs"),
    Page("docs/guide/ten-minutes-typescript.md", "typescript", "ten-minutes.ts"),
)

_GO_MODULE: Final = """module example

go 1.24

require gradserve.example/gradserve v0.0.0

replace gradserve.example/gradserve => {client}
"""
# Made as the client's conformance program is, so that what both depend on is compiled once.
_CRATE: Final = """[package]
name = "example"
version = "0.0.0"
edition = "2021"

[dependencies]
gradserve-client = {{ path = "{client}" }}

[[bin]]
name = "example"
path = "main.rs"

[profile.release]
opt-level = 1

[workspace]
"""
PROJECTS: Final = {
    "cpp": Project(
        build=(
            (
                "c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined",
                "-I{client}/include", "{source}", "{client}/build/libgradserve-client.a", "-lcurl", "-o", "program",
            ),
        ),
        start=("./program",),
    ),
    "go": Project(
        files={"go.mod": _GO_MODULE},
        build=(("go", "vet", "."), ("go", "build", "-o", "program", ".")),
        start=("./program",),
        environment={"GOPROXY": "off"},
    ),
    "java": Project(start=("java", "-cp", "{client}/target/classes:{client}/target/lib/*", "{source}")),
    "python": Project(start=(sys.executable, "{source}"), environment={"PYTHONPATH": "{client}"}),
    "rust": Project(
        files={"Cargo.toml": _CRATE},
        build=(("cargo", "build", "--quiet", "--release", "--offline", "--target-dir", "{client}/target"),),
        start=("{client}/target/release/example",),
    ),
    "sh": Project(start=("sh", "{source}"), needs=("curl",)),
    # The package as it would be published. Its compiler is the client's: nothing is fetched.
    "typescript": Project(
        files={"package.json": '{{"private": true, "type": "module"}}'},
        build=(
            ("npm", "pack", "--silent", "--ignore-scripts", "{client}"),
            ("sh", "-c", "npm install --silent --offline --no-audit --no-fund ./gradserve-client-*.tgz"),
            (
                "{client}/node_modules/.bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext",
                "--types", "node", "--typeRoots", "{client}/node_modules/@types", "--outDir", "build", "{source}",
            ),
            ("sh", "-c", "mv build/*.js program.js"),
        ),
        start=("node", "program.js"),
    ),
}  # fmt: skip
