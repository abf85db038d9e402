"""Pages whose marked blocks form a program, and how to build the programs with the client of the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.docs.marked import blocks

#: the server address that pages use
LOCAL: Final = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Page:
    """A page whose blocks that are marked with the language are, in order, the content of `source`.

    If a page has several programs, the marks of a later one end with its `part`, as in `rust_functions`. Blocks that
    are not a whole program stand inside `frame`.
    """

    path: str
    language: str
    source: str
    part: str = ""
    frame: str = "%s"
    output_in_comments: bool = False

    def __str__(self) -> str:
        return f"{self.marked(self.language)}-{self.path}"

    def marked(self, kind: str) -> str:
        """The mark of its blocks of one kind."""
        return f"{kind}_{self.part}" if self.part else kind

    @property
    def program(self) -> str:
        """The content of `source`."""
        return self.frame % "\n".join(blocks(self.path, self.marked(self.language)))

    @property
    def shown(self) -> str:
        """The output that the page shows: in blocks of its own, or in comments at the ends of lines."""
        if self.output_in_comments:
            return "".join(f"{line}\n" for line in re.findall(r"\);? *(?:#|//) (.+)", self.program))
        return "".join(blocks(self.path, self.marked("output")))


@dataclass(frozen=True)
class Project:
    """Commands that build a program in its own folder, and the command that starts it with a server address.

    `files` are written beside it by name. `{client}` is the client's folder, `{source}` the name of the source.
    """

    start: Sequence[str]
    build: Sequence[Sequence[str]] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    #: commands that it needs in addition to those of the client
    needs: Sequence[str] = ()

    def printed(self, page: Page, client: Path, folder: Path, url: str) -> str:
        """Build and run the page's program, and return its output."""
        fields = {"client": str(client), "source": page.source}
        for name, text in self.files.items():
            (folder / name).write_text(text.format(**fields), encoding="utf-8")
        program = page.program.replace(LOCAL, url)
        (folder / page.source).write_text(program, encoding="utf-8")
        environment = os.environ | {name: value.format(**fields) for name, value in self.environment.items()}
        for command in (*self.build, (*self.start, url)):
            words = [word.format(**fields) for word in command]
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            assert not done.returncode, f"{' '.join(words)}:\n{done.stdout}{done.stderr}"
        return done.stdout


_GO_FUNCTION: Final = """package main

import (
	"context"
	"fmt"
	"log"

	gs "gradserve.example/gradserve"
)

func run() error {
%s
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
"""
PAGES: Final = (
    Page("README.md", "go", "main.go", frame=_GO_FUNCTION, output_in_comments=True),
    Page("README.md", "python", "gradient.py", output_in_comments=True),
    Page("README.md", "typescript", "gradient.ts", output_in_comments=True),
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
# Built like the client's conformance program, so that shared dependencies are compiled once.
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
    # The package as it would be published. The compiler is the client's, so nothing is downloaded.
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
