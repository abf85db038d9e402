"""Files that a new op and a new call touch: only a few need writing or review, besides generated files."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.copied_tree import ROOT, copy_tree, run
from tests.docs import test_contributing, test_new_call
from tests.machine_made import by_hand

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="git, which reads .gitattributes, is not installed"),
]
MAX_FILES_OF_OP, MAX_FILES_OF_CALL = 6, 12
#: written by `make docs` in minutes, because it counts the samples of ops
MEASURED = {"docs/passes.md"}
#: files that CONTRIBUTING asks to write as well
WRITTEN_WITH_CALL = {"docs/guide/calls/slopes.md", "CHANGELOG.md"}
PARTS = ("engine", "schemas", "service", "docs", "examples", "clients")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with all clients."""
    copy = copy_tree(tmp_path_factory.mktemp("touched"))
    ignored = shutil.ignore_patterns("build", "target", "node_modules", "__pycache__")
    shutil.copytree(ROOT / "clients", copy / "clients", ignore=ignored, dirs_exist_ok=True)
    return copy


def changed_files(tree: Path, change: Callable[[], object]) -> set[str]:
    """Return the files that a change followed by `make generate` modifies."""
    before = digests(tree)
    change()
    process = run(tree, "-m", "scripts.generate")
    assert process.returncode == 0, process.stderr
    after = digests(tree)
    return {name for name in before | after if before.get(name) != after.get(name)}


def digests(tree: Path) -> dict[str, str]:
    """Return the digest of each file of the copy."""
    paths = (path for part in PARTS for path in (tree / part).rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(tree).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_elementwise_op_touches_few_files(tree: Path, tmp_path: Path) -> None:
    def drop_in() -> None:
        test_contributing.drop_in(tree)
        file = tree / "engine/ops/cube.py"
        # An alias would change one more page: docs/porting.md.
        file.write_text(file.read_text("utf-8").replace('    aliases = {"ThirdPower": "born"}\n', ""), "utf-8")

    changed = changed_files(tree, drop_in)
    assert {"engine/ops/cube.py", "docs/ops.md", "service/web/pages/generated/openapi.json"} <= changed
    assert by_hand(changed, tmp_path) == ["engine/ops/cube.py"]
    reviewed = {name for name in changed if "/generated/" not in name}
    assert len(reviewed | MEASURED) <= MAX_FILES_OF_OP, sorted(reviewed | MEASURED)


def test_call_touches_few_files(tree: Path, tmp_path: Path) -> None:
    changed = changed_files(tree, lambda: test_new_call.drop_in(tree))
    reviewed = {name for name in by_hand(changed, tmp_path) if not name.startswith("clients/")}
    assert len(reviewed) > len(test_new_call.FILES)
    assert len(reviewed | WRITTEN_WITH_CALL) <= MAX_FILES_OF_CALL, sorted(reviewed | WRITTEN_WITH_CALL)
