"""The CONTRIBUTING guide for ops: a single new file reaches the catalogue, the documents and the tests."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.copied_tree import copy_tree, run
from tests.docs.marked import blocks

pytestmark = pytest.mark.slow

CUBE = '''"""The op that the tests of CONTRIBUTING drop in."""

from __future__ import annotations

from engine.ir.attributes import Attr
from engine.ops.elementwise.base import Elementwise
from engine.ir.sample import Real, Sample
from engine.ir.sample import Truth


class Cube(Elementwise):
    """y = sharpness · x³, elementwise."""

    name = "cube"
    aliases = {"ThirdPower": "born"}
    operands = ("x",)
    attrs = {"sharpness": Attr("float", 1.0, "the factor")}
    dtypes = ("float16", "float32", "float64")
    gradient = "3 · sharpness · g · x²"
    partials = (lambda y, x, sharpness: x.square() * (FACTOR * sharpness),)
    samples = (Sample(Real(2, 3)), Sample(Real(2), sharpness=0.5))
TRUTHS
    cost = 3
    temporaries = 1

    def result_dtype(self, *dtypes, **attrs):
        """That of x."""
        return dtypes[0]

    def compute(self, run, *xs, out, sharpness, **attrs):
        """Two products and a factor."""
        run.xp.multiply(xs[0] * xs[0], xs[0], out=out)
        run.xp.multiply(out, GAIN * sharpness, out=out)
'''

SERVED = """
import json
from fastapi.testclient import TestClient
from tests.service.application import create_app

with TestClient(create_app(), base_url="http://localhost") as client:
    request = {
        "graph": {"nodes": [{"op": "parameter"}, {"op": "ThirdPower", "operands": [0], "attrs": {"sharpness": 2}}]},
        "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [2]}}],
    }
    answer = client.post("/v1/gradients", json=request)
    print(json.dumps({
        "document": client.get("/openapi.json").json(),
        "catalogue": client.get("/v1/ops/cube").json(),
        "answer": answer.json(),
    }))
"""


#: program that writes the catalogue, as `make docs` does
CATALOGUED = """
from engine import registry
from scripts.op_catalogue import PAGE, page
PAGE.write_text(page(registry()), encoding="utf-8")
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project."""
    return copy_tree(tmp_path_factory.mktemp("contributing"))


@pytest.fixture
def tree(copied: Path) -> Path:
    """Return the copy with the new op."""
    drop_in(copied)
    return copied


def drop_in(tree: Path, gain: float = 1.0, factor: float = 3.0, truths: str | None = None) -> None:
    """Add the op to the copy, with a factor in its kernel and one in its derivative, correct by default.

    The truths are those that CONTRIBUTING shows, unless given.
    """
    stated = blocks("CONTRIBUTING.md", "truths")[0] if truths is None else truths
    op = CUBE.replace("GAIN", str(gain)).replace("FACTOR", str(factor)).replace("TRUTHS\n", stated)
    (tree / "engine/ops/cube.py").write_text(op, encoding="utf-8")


def test_new_op_is_served(tree: Path) -> None:
    made = run(tree, "-m", "scripts.write_openapi", "service/web/pages/generated")
    assert made.returncode == 0, made.stderr
    made = run(tree, "-c", CATALOGUED)
    assert made.returncode == 0, made.stderr
    served = run(tree, "-c", SERVED)
    assert served.returncode == 0, served.stderr
    output = json.loads(served.stdout)
    schemas = output["document"]["components"]["schemas"]
    listed = schemas["GraphNode"]["properties"]["op"]["x-extensible-enum"]
    assert "cube" in listed
    assert "ThirdPower" not in listed, "aliases are not listed"
    assert "sharpness" in schemas["Attrs"]["properties"]
    assert output["catalogue"]["name"] == "cube"
    assert output["answer"]["values"][0]["tensor"]["data"] == [16.0]
    assert output["answer"]["gradients"][0]["tensor"]["data"] == [24.0]


def test_make_docs_documents_new_op(tree: Path) -> None:
    before = run(tree, "-m", "scripts.build_docs", "--check")
    assert before.returncode == 1, "the check does not detect a new op"
    assert run(tree, "-m", "scripts.build_docs").returncode == 0
    assert run(tree, "-m", "scripts.build_docs", "--check").returncode == 0
    assert "\n## cube\n" in (tree / "docs/ops.md").read_text(encoding="utf-8")
    assert "`ThirdPower`" in (tree / "docs/porting.md").read_text(encoding="utf-8")


def run_contract_tests(tree: Path, tests: str = "") -> tuple[str, set[str]]:
    """Run the contract tests of the op, or those of one file, and return their output and the failing files."""
    process = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/contract/{tests}", "-k", "cube")
    failed = set(re.findall(r"^FAILED tests/contract/(\w+)\.py", process.stdout, re.MULTILINE))
    assert process.returncode == bool(failed), process.stdout[-3000:]
    return process.stdout, failed


def test_contract_tests_cover_new_op(tree: Path) -> None:
    printed, failed = run_contract_tests(tree)
    assert not failed, printed[-3000:]
    assert "passed" in printed


def test_wrong_derivative_fails(tree: Path) -> None:
    drop_in(tree, factor=2.0)
    assert run_contract_tests(tree, "test_derivatives.py")[1] == {"test_derivatives"}


def test_doubled_op_fails(tree: Path) -> None:
    """Double kernel and derivative, so that every comparison of the op with itself passes."""
    drop_in(tree, gain=2.0, factor=6.0)
    printed, failed = run_contract_tests(tree)
    assert failed == {"test_truths"}, printed[-3000:]
    assert "the value of cube, by hand: 0.5 · x³" in printed


def test_op_without_truth_fails(tree: Path) -> None:
    drop_in(tree, truths="")
    printed, failed = run_contract_tests(tree, "test_truths.py")
    assert failed, printed[-3000:]
    assert "state in class Cube (engine/ops/cube.py), beside `samples`, truths = (Truth(" in printed


def test_uninformative_truth_fails(tree: Path) -> None:
    """Use a truth at 0, where every multiple of a cube has the same value and gradient."""
    zero = 'Truth(operands=[0.0], value=0.0, gradients=[0.0], source="by hand")'
    drop_in(tree, truths=f"    truths = ({zero},)\n")
    printed, failed = run_contract_tests(tree, "test_truths.py")
    assert failed, printed[-3000:]
    assert "FAILED tests/contract/test_truths.py::test_doubled_op_fails_truths[cube]" in printed
    assert "would pass every other test" in printed


def test_opset_spec_still_passes(tree: Path) -> None:
    spec = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/spec/test_opset.py")
    assert spec.returncode == 0, spec.stdout[-3000:]
