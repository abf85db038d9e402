"""The wheels of the server and the Python client contain every file of their packages that is in the repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.deploy.images import ROOT


@pytest.mark.skipif(shutil.which("git") is None, reason="git, which lists the files, is not installed")
@pytest.mark.parametrize(
    ("project", "packages"), [(ROOT, ["engine", "schemas", "service"]), (ROOT / "clients/python", ["gradserve_client"])]
)
def test_wheel_has_every_file_of_its_packages(project: Path, packages: list[str]) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *packages], cwd=project, capture_output=True, check=True, text=True
    )
    included = {file.distribution_path for file in WheelBuilder(str(project)).recurse_included_files()}
    assert included == {*listed.stdout.split("\0")} - {""}
