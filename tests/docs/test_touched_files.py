"""How many files a new op and a new call touch: few that a person writes or reviews, whatever is made of them."""

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
    pytest.mark.skipif(shutil.which("git") is None, reason="there is no git, which reads .gitattributes"),
]
MOST_OF_AN_OP, MOST_OF_A_CALL = 6, 12
#: written by `make docs`, in minutes: it counts the samples of ops
MEASURED = {"docs/passes.md"}
#: what CONTRIBUTING says to write beside
OF_A_CALL = {"docs/guide/calls/slopes.md", "CHANGELOG.md"}
PARTS = ("engine", "schemas", "service", "docs", "examples", "clients")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with all clients."""
    copy = copy_tree(tmp_path_factory.mktemp("touched"))
    ignored = shutil.ignore_patterns("build", "target", "node_modules", "__pycache__")
    shutil.copytree(ROOT / "clients", copy / "clients", ignore=ignored, dirs_exist_ok=True)
    return copy


def touched(tree: Path, change: Callable[[], object]) -> set[str]:
    """The files that a change and `make generate` after it write anew."""
    before = digests(tree)
    change()
    made = run(tree, "-m", "scripts.generate")
    assert made.returncode == 0, made.stderr
    after = digests(tree)
    return {name for name in before | after if before.get(name) != after.get(name)}


def digests(tree: Path) -> dict[str, str]:
    """Each file of the copy by its name."""
    paths = (path for part in PARTS for path in (tree / part).rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(tree).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_an_elementwise_op(tree: Path, tmp_path: Path) -> None:
    def drop_in() -> None:
        test_contributing.drop_in(tree)
        file = tree / "engine/ops/cube.py"
        # An alias is one page more: docs/porting.md.
        file.write_text(file.read_text("utf-8").replace('    aliases = {"ThirdPower": "born"}\n', ""), "utf-8")

    found = touched(tree, drop_in)
    assert {"engine/ops/cube.py", "docs/ops.md", "service/web/pages/generated/openapi.json"} <= found
    assert by_hand(found, tmp_path) == ["engine/ops/cube.py"]
    outside = {name for name in found if "/generated/" not in name}
    assert len(outside | MEASURED) <= MOST_OF_AN_OP, sorted(outside | MEASURED)


def test_a_call(tree: Path, tmp_path: Path) -> None:
    found = touched(tree, lambda: test_new_call.drop_in(tree))
    outside = {name for name in by_hand(found, tmp_path) if not name.startswith("clients/")}
    assert len(outside) > len(test_new_call.FILES)
    assert len(outside | OF_A_CALL) <= MOST_OF_A_CALL, sorted(outside | OF_A_CALL)
