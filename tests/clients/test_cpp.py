"""The C++ client: its version and its headers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "cpp"


def test_version_matches_the_server() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    header = (CLIENT / "include" / "gradserve" / "client.hpp").read_text(encoding="utf-8")
    assert re.findall(r'version = "(.*)"', header) == [version]
    project = (CLIENT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert re.findall(r"project\(.* VERSION (\S+)", project) == [version]


def test_headers_hide_implementation_libraries() -> None:
    headers = "".join(path.read_text(encoding="utf-8") for path in CLIENT.glob("include/**/*.hpp"))
    assert "nlohmann" not in headers
    assert "curl/" not in headers
