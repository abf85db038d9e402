"""The CONTRIBUTING guide for dtypes: a new table row reaches types, gradients, documents and bodies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.copied_tree import copy_tree, run

pytestmark = pytest.mark.slow

TABLE = "engine/ir/tensor_type.py"
BEFORE = '    ElementType("int64",'
#: integers, so that all code for integers accepts the dtype
WHOLE = '    ElementType("uint32", "integer", 4, False, "U32", 11),\n'

SERVED = """
import json
import numpy as np
from fastapi.testclient import TestClient
from safetensors.numpy import load, save
from engine import TensorType, registry
from engine.ir.tensor_type import in_opset
from engine.ir.tensor_type import promote
from tests.service.application import create_app
from service.api.binary import write_one
from service.api.tensors import encoded_bytes

BINARY = {"Content-Type": "application/vnd.safetensors", "Accept": "application/vnd.safetensors"}
x = np.array([0, 2**32 - 1], np.uint32)
graph = {"graph": {"nodes": [{"op": "input"}, {"op": "cumsum", "operands": [0], "attrs": {"axis": 0}}]}}
request = graph | {"outputs": [0, 1]}

def forward(client, **more):
    return client.post("/v1/forward", **more)

def tensor(dtype, data):
    return {"feeds": [{"node": 0, "tensor": {"dtype": dtype, "shape": [2], "data": data}}]}

with TestClient(create_app(), base_url="http://localhost") as client:
    body = save({"feeds.0": x}, {"request": json.dumps(request)})
    answered = forward(client, content=body, headers=BINARY).content
    print(json.dumps({
        "types": [str(promote(np.dtype("uint32"), np.dtype(other))) for other in ("uint8", "int8", "float32")],
        "kept": str(in_opset(np.dtype("uint32"))),
        "differentiable": TensorType((2,), np.dtype("uint32")).is_differentiable,
        "takes": registry().ops["cumsum"].dtypes,
        "json": forward(client, json=request | tensor("uint32", x.tolist())).json(),
        "beyond": forward(client, json=request | tensor("uint32", [0, 2**32])).json(),
        "unknown": forward(client, json=request | tensor("uint16", [0, 1])).json(),
        "gradients": client.post("/v1/gradients", json=graph | tensor("uint32", [0, 1]) | {"wrt": [0]}).json(),
        "binary": {name: [str(a.dtype), a.tolist()] for name, a in load(answered).items()},
        "length": encoded_bytes([TensorType.of(x)], "json") - encoded_bytes([TensorType((0,), x.dtype)], "json"),
        "one": load(b"".join(write_one("x", x)))["x"].tolist(),
    }))
"""


def add_row(tree: Path, row: str) -> Path:
    """Add the row to the dtype table of the copy."""
    table = tree / TABLE
    text = table.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    table.write_text(text.replace(BEFORE, row + BEFORE), encoding="utf-8")
    return tree


def run_json(tree: Path, program: str) -> dict[str, Any]:
    """Run a program in the copy and return the JSON that it prints."""
    process = run(tree, "-c", program)
    assert process.returncode == 0, process.stderr
    return dict(json.loads(process.stdout))


@pytest.fixture(scope="module")
def tree_with_uint32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy with the dtype uint32."""
    return add_row(copy_tree(tmp_path_factory.mktemp("unsigned")), WHOLE)


@pytest.fixture(scope="module")
def served(tree_with_uint32: Path) -> dict[str, Any]:
    """Return the answers of a service with the dtype."""
    return run_json(tree_with_uint32, SERVED)


def test_new_dtype_has_type_rules(served: dict[str, Any]) -> None:
    assert served["types"] == ["uint32", "int64", "float64"]
    assert served["kept"] == "uint32", "it is no longer widened"
    assert served["differentiable"] is False
    assert "uint32" in served["takes"]


def test_openapi_document_lists_new_dtype(tree_with_uint32: Path) -> None:
    written = run(tree_with_uint32, "-m", "scripts.write_openapi", "written")
    assert written.returncode == 0, written.stderr
    messages = json.loads((tree_with_uint32 / "written/openapi.json").read_bytes())["components"]["schemas"]
    fields = {name: m["properties"]["dtype"] for name, m in messages.items() if "dtype" in m.get("properties", {})}
    listing = {name for name, field in fields.items() if "uint32" in field["x-extensible-enum"]}
    of_models = {"ModelInput", "ModelOutput", "ModelTensor"}
    assert listing == {"Attrs", "NodePlan", "NodeType", "Stats", "Tensor", "TensorSummary"} | of_models


def test_new_dtype_round_trips_json(served: dict[str, Any]) -> None:
    tensors = [value["tensor"] for value in served["json"]["values"]]
    assert [(t["dtype"], t["data"]) for t in tensors] == [("uint32", [0, 2**32 - 1]), ("int64", [0, 2**32 - 1])]
    assert served["beyond"]["expected"] == f"0 to {2**32 - 1}"
    assert served["unknown"]["detail"].endswith("has the unsupported dtype “uint16”; did you mean uint32?")
    assert served["length"] >= len(f"{2**32 - 1},{2**32 - 1},")


def test_new_dtype_round_trips_safetensors(served: dict[str, Any]) -> None:
    assert served["binary"]["values.0"] == ["uint32", [0, 2**32 - 1]]
    assert served["one"] == [0, 2**32 - 1]


def test_new_dtype_is_not_differentiable(served: dict[str, Any]) -> None:
    assert served["gradients"]["code"] == "not_differentiable"
    assert served["gradients"]["got"] == "uint32"
