"""Clients by language: their folders, and the commands that build, test and start their programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CLIENTS: Final = Path(__file__).parents[1]


@dataclass(frozen=True)
class Language:
    """A client: its folder, and the commands, run there, that start its program, run its own tests, and build it.

    `needs` are required commands, and libraries such as `libcurl.pc`. `fetched` is the folder of dependencies that
    `build` downloads.
    """

    folder: Path
    start: Sequence[str]
    tests: Sequence[Sequence[str]]
    build: Sequence[Sequence[str]] = ()
    needs: Sequence[str] = ()
    fetched: str = ""


LANGUAGES: Final = {
    "cpp": Language(
        CLIENTS / "cpp",
        start=("./build/conformance/conformance",),
        tests=(
            ("cmake", "--build", "build", "--parallel", "2"),
            ("ctest", "--test-dir", "build", "--output-on-failure"),
        ),
        build=(
            ("cmake", "-S", ".", "-B", "build", "-DGRADSERVE_SANITIZE=ON", "-DCMAKE_UNITY_BUILD=ON"),
            ("cmake", "--build", "build", "--parallel", "2", "--target", "conformance"),
        ),
        needs=("cmake", "c++", "pkg-config", "libcurl.pc", "nlohmann_json.pc"),
    ),
    "go": Language(
        CLIENTS / "go",
        start=("./build/conformance",),
        tests=(("go", "vet", "./..."), ("go", "test", "./...")),
        build=(("go", "build", "-o", "build/conformance", "./cmd/conformance"),),
        needs=("go",),
    ),
    "java": Language(
        CLIENTS / "java",
        start=(
            "java",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            "target/classes:target/test-classes:target/lib/*",
            "example.gradserve.conformance.Main",
        ),
        tests=(("mvn", "-q", "test"),),
        build=(("mvn", "-q", "test-compile"),),
        needs=("java", "mvn"),
        fetched="target/lib",
    ),
    "python": Language(
        CLIENTS / "python",
        start=(sys.executable, "conformance.py"),
        tests=((sys.executable, "-m", "pytest", "-q", "-n", "auto", "tests"),),
    ),
    "rust": Language(
        CLIENTS / "rust",
        start=("target/release/examples/conformance",),
        tests=(
            ("cargo", "fmt", "--check"),
            ("cargo", "clippy", "--quiet", "--all-targets", "--all-features", "--", "-D", "warnings"),
            ("cargo", "test", "--quiet"),
            ("cargo", "test", "--quiet", "--features", "async"),
            ("cargo", "doc", "--quiet", "--no-deps", "--all-features", "--config", "build.rustdocflags=['-Dwarnings']"),
        ),
        build=(("cargo", "build", "--quiet", "--release", "--example", "conformance"),),
        needs=("cargo",),
        fetched="target",
    ),
    "typescript": Language(
        CLIENTS / "typescript",
        start=("node", "build/conformance.js"),
        tests=(("npm", "test"),),
        build=(("npm", "run", "build"),),
        needs=("node", "npm"),
        fetched="node_modules",
    ),
}
