"""Exported gradients: the program computes the gradients, can be serialized, and can be differentiated again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import Gradients, Limits, Statement, registry
from engine.analysis.export import export_gradients
from engine.ir.attributes import bind
from tests.contract.cases import ONCE
from tests.engine.autodiff.calls.asking import Array, Net, kind
from tests.engine.autodiff.calls.test_laws import each_op, weighted
from tests.sampling import together

pytestmark = pytest.mark.slow

CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def differentiated(net: Net, of: int, wrt: Sequence[int]) -> tuple[Net, dict[int, int]]:
    """Return the exported program with the feeds of the original, and the node of each gradient."""
    call = Gradients.of_program(net.program, of, wrt)
    needed = set(net.program.needed(call.roots))
    types = {i: t for i, t in net.types.items() if i in needed}
    exported = export_gradients(net.program, types, call, Limits())
    return Net([via_json(s) for s in exported.statements], net.feeds), dict(exported.gradients)


def via_json(statement: Statement) -> Statement:
    """Return the statement after a JSON round trip; an empty list stands for the default."""
    assert statement.op is registry().ops[statement.op.name]
    tensors = {name: v for name, v in statement.attrs.items() if isinstance(v, np.ndarray)}
    others = {name: v for name, v in statement.attrs.items() if name not in tensors}
    plain: dict[str, Any] = json.loads(json.dumps(others, allow_nan=False))
    plain = {name: v for name, v in plain.items() if v != [] and v is not None}
    bind(statement.op.attrs, {**plain, **tensors})
    return Statement(statement.op, statement.operands, {**plain, **tensors}, statement.name)


def gradients(net: Net, of: int, wrt: Sequence[int]) -> dict[tuple[int, ...], Array]:
    return kind(net.ask(Gradients.of_program(net.program, of, wrt)), "gradients")


def check_once(net: Net, of: int, wrt: Sequence[int]) -> tuple[Net, dict[int, int]]:
    """Assert that the program computes the gradients, and return it."""
    exported, nodes = differentiated(net, of, wrt)
    expected = gradients(net, of, wrt)
    for x, actual in zip(wrt, exported.values(*(nodes[x] for x in wrt)), strict=True):
        assert actual.dtype == expected[(x,)].dtype
        np.testing.assert_allclose(actual, expected[(x,)], **CLOSE)
    return exported, nodes


def check_twice(net: Net, of: int, wrt: Sequence[int], by: Sequence[int]) -> None:
    """Compare the gradient of the gradient's square: by exporting twice, and by a nested grad node."""
    exported, nodes = check_once(net, of, wrt)
    nested = Net(list(net.statements), net.feeds)
    for x in wrt:
        second = exported.add("sum", exported.add("square", nodes[x]))
        reference = nested.add("sum", nested.add("square", nested.add("grad", of, x)))
        exported_twice, nodes_twice = check_once(exported, second, by)
        expected = gradients(nested, reference, by)
        for node, actual in zip(by, exported_twice.values(*(nodes_twice[node] for node in by)), strict=True):
            np.testing.assert_allclose(actual, expected[(node,)], **CLOSE)


@together
@each_op
def test_every_op_exported_twice(case: Any) -> None:
    """With respect to its operands, then every float node."""
    net, wrt, loss = weighted(case)
    wrt = [x for x in wrt if x not in ONCE.get(case.op.name, ())]
    by = [i for i in net.program.needed([loss]) if is_float(net, i)]
    check_twice(net, loss, wrt, by)


def is_float(net: Net, node: int) -> bool:
    single = not net.statements[node].op.several
    return single and net.values(node)[0].dtype.kind == "f"
