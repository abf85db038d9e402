"""C++'s client: what it says of itself, and that it is found where it is installed."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from clients.conformance.languages import LANGUAGES
from clients.tools import lacking
from examples.server import running_server

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "cpp"


def test_its_version_is_the_servers() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    header = (CLIENT / "include" / "gradserve" / "client.hpp").read_text(encoding="utf-8")
    assert re.findall(r'version = "(.*)"', header) == [version]
    project = (CLIENT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert re.findall(r"project\(.* VERSION (\S+)", project) == [version]


def test_no_header_has_what_it_is_made_with() -> None:
    headers = "".join(path.read_text(encoding="utf-8") for path in CLIENT.glob("include/**/*.hpp"))
    assert "nlohmann" not in headers
    assert "curl/" not in headers


_PROJECT = """cmake_minimum_required(VERSION 3.21)
project(example CXX)
find_package(gradserve-client REQUIRED)
add_executable(example main.cpp)
target_link_libraries(example PRIVATE gradserve::client)
"""


@pytest.mark.slow
def test_the_program_of_its_page_finds_it_and_runs(tmp_path: Path) -> None:
    if absent := lacking(LANGUAGES["cpp"].needs):
        pytest.skip(f"needs {', '.join(absent)}")
    (program,) = re.findall(r"```cpp\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (printed,) = re.findall(r"// (\d.*)", program)
    example = tmp_path / "example"
    example.mkdir()
    (example / "CMakeLists.txt").write_text(_PROJECT, encoding="utf-8")
    commands = (
        ["cmake", "-S", str(CLIENT), "-B", "made", "-DGRADSERVE_DEVELOP=OFF", "-DCMAKE_UNITY_BUILD=ON"],
        ["cmake", "--build", "made", "--parallel", "2"],
        ["cmake", "--install", "made", "--prefix", "installed"],
        ["cmake", "-S", "example", "-B", "built", f"-DCMAKE_PREFIX_PATH={tmp_path / 'installed'}"],
        ["cmake", "--build", "built"],
    )
    with running_server("--device", "cpu", "--workers", "1") as url:
        (example / "main.cpp").write_text(program.replace("http://127.0.0.1:8000", url), encoding="utf-8")
        for command in commands:
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        run = subprocess.run([tmp_path / "built" / "example"], capture_output=True, text=True, check=False)
    assert run.stdout.split() == printed.split(), run.stderr
