"""The CONTRIBUTING guide for attribute kinds: a new file is validated, printed, parsed, documented and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.copied_tree import copy_tree, run

pytestmark = pytest.mark.slow

KINDS = "engine/ir/kinds"

KIND = '''"""Complex numbers, as the tests of a new kind drop them in."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

from engine.ir.kinds.kind import AttributeKind, JsonSchema
from engine.ir.kinds.scalars import FloatKind

_PART = FloatKind()


class ComplexKind(AttributeKind):
    """A complex number: its real part and its imaginary one."""

    name = "complex"
    position = 8
    expected = "a finite real part and a finite imaginary one"
    roughly = "two numbers"
    forms = (complex,)
    samples: ClassVar[tuple[Any, ...]] = ([0.5, -1.0], [0.0, 0.0], [0.0, -0.0], [-2.0, 1e-5])

    def admits(self, stated: Any) -> bool:
        """Whether it is a pair of numbers."""
        return isinstance(stated, (list, tuple)) and len(stated) == 2 and all(map(_PART.admits, stated))

    def bound(self, stated: Any) -> complex:
        """As Python's."""
        return complex(*stated)

    def stated(self, value: Any) -> list[float]:
        """The pair."""
        return [value.real, value.imag]

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """An array of two numbers."""
        return {"type": "array", "items": _PART.schema(tensor), "minItems": 2, "maxItems": 2}

    def canonical(self, value: Any) -> Any:
        """Both parts as floats are written."""
        return [_PART.canonical(part) for part in self.stated(value)]

    def key(self, value: Any) -> Hashable:
        """The bits of both."""
        return "complex", value.real.hex(), value.imag.hex()
'''

OP = '''"""An op with an attribute of the new kind."""

from __future__ import annotations

from engine.ir.attributes import Attr
from engine.ir.sample import Real, Sample
from engine.ir.sample import Truth
from engine.ops.elementwise.base import FloatUnary


class Turn(FloatUnary):
    """y = re · x + im, of one complex number re + im · i."""

    name = "turn"
    attrs = {"by": Attr("complex", 1j, "the number")}
    dtypes = ("float16", "float32", "float64")
    gradient = "g · re"
    cost = 2
    samples = (Sample(Real(2, 3)), Sample(Real(2), by=[0.5, -1.0]))
    truths = (Truth(operands=[[2.0, -1.0]], attrs={"by": [0.5, 3.0]}, value=[4.0, 2.5], gradients=[[0.5, 0.5]],
                    source="by hand: 0.5 · x + 3"),)
    scalar = staticmethod(lambda x, by: x * by.real + by.imag)
    partials = (lambda y, x, by: by.real,)
'''

SERVED = """
import json
from fastapi.testclient import TestClient
from engine import Program, Statement, registry
from engine.ir.program import canonical
from engine.ir.text import parse_graph, print_graph
from engine.ir.verify import MalformedGraph, verify
from scripts.op_catalogue import catalogue_of
from scripts.write_openapi import build_document
from tests.service.application import create_app

def asked(by):
    nodes = [{"op": "parameter"}, {"op": "turn", "operands": [0], "attrs": {"by": by}}]
    return {"graph": {"nodes": nodes}, "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [2]}}]}

def refusal(by):
    return client.post("/v1/forward", json=asked(by)).json()["detail"]

with TestClient(create_app(), base_url="http://localhost") as client:
    kept = client.post("/v1/graphs", json={"graph": asked([0.5, 3])["graph"]}).json()
    answers = [client.post("/v1/gradients", json=asked([0.5, 3])).json() for _ in range(2)]
    names = [client.post("/v1/forward", json=asked(by)).json()["stats"]["graph_id"] for by in ([0.5, 0.0], [0.5, -0.0])]
    text = '%0 = input {"feed": 0} : float64[]\\n%1 = turn(%0) {"by": [0.5, 3.0]} : float64[]\\nreturn %1\\n'
    graph = parse_graph(text, registry())
    verify(graph)
    node = graph.nodes[1]
    wrong = graph.with_nodes([graph.nodes[0], node._replace(attrs={"by": [0.5, 3.0]})], graph.outputs)
    try:
        verify(wrong)
        malformed = None
    except MalformedGraph as error:
        malformed = str(error)
    ops = registry().ops
    program = Program(registry(), [Statement(ops["input"]), Statement(ops["turn"], (0,), {"by": [0.5, -0.0]})])
    print(json.dumps({
        "schemas": build_document()["components"]["schemas"],
        "catalogue": next(row for row in catalogue_of(registry())["ops"] if row["name"] == "turn"),
        "answers": answers,
        "refusals": [refusal([1.0, 2.0, 3.0]), refusal(1.0), refusal({"re": 1})],
        "kept": kept,
        "again": client.get(f"/v1/graphs/{kept['graph_id']}").json()["graph"],
        "names": names,
        "text": [text, print_graph(graph)],
        "malformed": malformed,
        "canonical": json.loads(canonical(program)),
    }))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with the new kind and an op that uses it."""
    copy = copy_tree(tmp_path_factory.mktemp("new_kind"))
    (copy / KINDS / "complex_number.py").write_text(KIND, encoding="utf-8")
    (copy / "engine/ops/turn.py").write_text(OP, encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def served(tree: Path) -> Any:
    """Return the output of the service and the engine for the new kind."""
    process = run(tree, "-c", SERVED)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_new_kind_is_validated(served: Any) -> None:
    for answer in served["answers"]:
        assert answer["gradients"][0]["tensor"]["data"] == [0.5]
    assert served["answers"][1]["stats"]["plan_cached"]
    prefix = "node 1 (turn): attribute by must be"
    assert served["refusals"] == [
        f"{prefix} a finite real part and a finite imaginary one, but is [1.0, 2.0, 3.0]",
        f"{prefix} a finite real part and a finite imaginary one, but is 1.0",
        f"{prefix} two numbers, but is an object",
    ]


def test_new_kind_is_documented(served: Any) -> None:
    attribute = served["schemas"]["Attrs"]["properties"]["by"]
    assert (attribute["type"], attribute["minItems"], attribute["description"]) == ("array", 2, "turn: the number")
    kinds = served["schemas"]["AttributeInfo"]["properties"]["type"]["description"]
    assert kinds == "int, float, bool, string, ints, dtype, tensor, complex or function"
    (row,) = served["catalogue"]["attributes"]
    assert (row["type"], row["default"]) == ("complex", "[0.0,1.0]")


def test_new_kind_is_part_of_graph_id(served: Any) -> None:
    assert len(set(served["names"])) == 2
    assert served["canonical"]["nodes"][1]["attrs"] == {"by": ["3fe0000000000000", "8000000000000000"]}
    assert served["again"]["nodes"][1]["attrs"] == {"by": [0.5, 3]}


def test_new_kind_is_printed_and_verified(served: Any) -> None:
    assert served["text"][0] == served["text"][1]
    assert "attribute by is no complex in the form that rules receive: [0.5, 3.0]" in served["malformed"]


def test_make_docs_documents_new_kind(tree: Path) -> None:
    assert run(tree, "-m", "scripts.build_docs").returncode == 0
    section = (tree / "docs/ops.md").read_text(encoding="utf-8").partition("\n## turn\n")[2].partition("\n## ")[0]
    assert "| `by` | complex | [0.0, 1.0] | the number |" in section


def test_existing_tests_cover_new_kind(tree: Path) -> None:
    """Run the tests of attribute kinds, of random input and of truths."""
    files = ("tests/engine/ir/test_kinds.py", "tests/contract/test_hostile.py", "tests/contract/test_truths.py")
    process = run(tree, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *files, "-k", "test_kinds or turn")
    assert process.returncode == 0, process.stdout[-3000:]


def test_kind_ignoring_sign_of_zero_fails(tree: Path) -> None:
    path = tree / KINDS / "complex_number.py"
    path.write_text(
        KIND.replace('return "complex", value.real.hex(), value.imag.hex()', "return value"), encoding="utf-8"
    )
    try:
        process = run(tree, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/engine/ir/test_kinds.py")
    finally:
        path.write_text(KIND, encoding="utf-8")
    assert "test_samples_have_distinct_keys_and_canonical_forms" in process.stdout
