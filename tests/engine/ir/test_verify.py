"""The graph verifier: the defects that it reports, where the tests run it, and checks of results of rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from engine import Builder, Graph, Limits, Node, Program, Statement, TensorType, Value, Values, registry
from engine.autodiff.jacobian import jacobian
from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import expand_grad, vjp
from engine.autodiff.vmap import vmap
from engine.compiler import compiler
from engine.compiler.compiler import CompileRequest
from engine.compiler.plan import make_plan
from engine.ir.graph import KeyedAttributes, Origin
from engine.ir.op import Registry
from engine.ir.passes import PASSES, Allowance, run_passes
from engine.ir.verify import MalformedGraph, verify
from tests.engine.ir.verified import constructed

OPS = registry().ops
F = TensorType((2, 3), np.dtype("float64"))
COLUMN = TensorType((2,), np.dtype("float64"))


def small() -> Builder:
    """%0 and %1 are fed, %2 = %0 · %1, %3 is its sum over the last axis, %4 has several results, %5 is the first."""
    builder = Builder(registry())
    x, w = builder.leaf(F, 0), builder.leaf(F, 1, "parameter")
    (x * w).sum(axes=(1,)).topk(k=2, axis=0).output(0)
    return builder


def altered(index: int, **fields: Any) -> Graph:
    """The small graph with one invalid node, built without the verifier."""
    nodes = list(small().nodes)
    nodes[index] = nodes[index]._replace(**fields)
    return unverified(nodes, (len(nodes) - 1,))


def unverified(nodes: Sequence[Node], outputs: tuple[int, ...]) -> Graph:
    graph = object.__new__(Graph)
    for name, value in (("nodes", tuple(nodes)), ("outputs", outputs), ("registry", registry())):
        object.__setattr__(graph, name, value)
    return graph


def test_valid_graph_passes() -> None:
    builder = small()
    verify(builder.graph([builder.value(5)]), expanded=True)


def test_verified_statements_are_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = Builder(registry())
    x = builder.leaf(F, 0)
    (x * x).sum(axes=(1,))
    verified: set[Hashable] = set()
    graph = unverified(builder.nodes, (2,))
    verify(graph, verified=verified)
    inferred: list[str] = []
    for op in (OPS["mul"], OPS["sum"]):
        monkeypatch.setattr(type(op), "infer", lambda self, *types, **attrs: inferred.append(self.name) or COLUMN)
    verify(graph, verified=verified)
    assert not inferred
    other = graph.nodes[2]._replace(types=(F,))  # the same op, operands and attributes: another statement
    with pytest.raises(MalformedGraph, match="the op infers float64"):
        verify(unverified([*graph.nodes[:2], other], (2,)), verified=verified)
    assert inferred == ["sum"]


def test_verified_graph_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Including leaves, several results and their projections."""
    verified: set[Hashable] = set()
    verify(unverified(small().nodes, (5,)), verified=verified)
    monkeypatch.setattr(
        "engine.ir.verify._first_defect", lambda context, verified: f"{context.node.op.name} is looked at"
    )
    verify(unverified(small().nodes, (5,)), verified=verified)


def test_verification_is_per_registry() -> None:
    verified: set[Hashable] = set()
    graph = unverified(small().nodes, (5,))
    verify(graph, verified=verified)
    object.__setattr__(graph, "registry", Registry(op for op in OPS.values() if op.name != "mul"))
    with pytest.raises(MalformedGraph, match="the registry has no such op"):
        verify(graph, verified=verified)


def test_defects_are_reported_every_time() -> None:
    verified: set[Hashable] = set()
    for _ in range(2):
        with pytest.raises(MalformedGraph) as caught:
            verify(altered(2, types=(F.with_dtype("float32"),)), verified=verified)
        assert caught.value.node == 2


SUM = {"axes": (1,), "keepdims": False}
WRONG: dict[str, tuple[Graph, str]] = {
    "later operand": (altered(2, operands=(0, 2)), "%2 = mul(%0, %2) : float64[2,3]: operand %2 is no earlier node"),
    "negative operand": (altered(2, operands=(0, -1)), "operand %-1 is no earlier node"),
    "operand of NumPy": (altered(2, operands=(0, np.int64(1))), "operand %1 is no earlier node"),
    "operand count": (altered(2, operands=(0,)), "takes 2 operands (a, b), but got 1"),
    "operand of a leaf": (altered(1, operands=(0,)), "takes 0 operands, but got 1"),
    "several results": (
        altered(5, op=OPS["neg"], attrs={}, operands=(4,)),
        "operand %4 has several results, and is not read through get_output",
    ),
    "projection of one": (altered(5, operands=(3,)), "%5 = get_output(%3) : float64[2]: operand %3 has one result"),
    "projection out of range": (altered(5, attrs={"index": 2}), "attribute index must be between 0 and 1, but is 2"),
    "shape": (altered(3, types=(F,)), "%3 = sum(%2) : float64[2,3]: the op infers float64[2]"),
    "other axes": (altered(3, attrs=KeyedAttributes(SUM | {"axes": (0,)})), "the op infers float64[3]"),
    "dtype": (altered(2, types=(F.with_dtype("float32"),)), "the op infers float64[2,3]"),
    "results": (altered(4, types=(COLUMN,)), "the op infers float64[2], int64[2]"),
    "extents of NumPy": (altered(0, types=(F.with_shape((np.int64(2), 3)),)), "float64[2,3] is no type of the opset"),
    "dtype of no opset": (altered(0, types=(F.with_dtype("uint16"),)), "uint16[2,3] is no type of the opset"),
    "what infer refuses": (altered(1, types=(F.with_shape((4, 4)),)), "%2 = mul(%0, %1) : float64[2,3]: no type"),
    "unknown attribute": (
        altered(2, attrs={"axis": 1}),
        "%2 = mul(%0, %1) : float64[2,3]: its attributes are axis, but the op has none",
    ),
    "missing attribute": (altered(3, attrs={"axes": (1,)}), "its attributes are axes, but the op has axes, keepdims"),
    "attributes in disorder": (
        altered(3, attrs={"keepdims": False, "axes": (1,)}),
        "its attributes are keepdims, axes, but the op has axes, keepdims",
    ),
    "attribute of another kind": (altered(3, attrs=SUM | {"axes": [1]}), "attribute axes is no ints in the form"),
    "number of NumPy": (altered(3, attrs=SUM | {"axes": (np.int64(1),)}), "attribute axes is no ints in the form"),
    "not canonical": (altered(3, attrs=SUM | {"axes": (-1,)}), "attribute axes is (-1,), whose canonical form is (1,)"),
    "refused attribute": (altered(3, attrs=SUM | {"axes": (7,)}), "its attributes are refused: axes must be"),
    "leaf without a feed": (altered(0, attrs={}), "its attributes are none, but the op has feed"),
    "composite": (
        altered(2, op=OPS["squeeze"], operands=(0,), attrs={"axes": None}),
        "it is a composite, which should have been written out",
    ),
    "op of no registry": (altered(2, op=type(OPS["mul"])()), "the registry has no such op"),
    "origin": (altered(2, origin=Origin(-1, "mul")), "its origin is node -1 (mul)"),
    "origin of no op": (altered(2, origin=Origin(0, "times")), "its origin is node 0 (times)"),
    "one key twice": (altered(1, attrs={"feed": 0}), "%1 = parameter : float64[2,3]: %0 is fed under the same key"),
    "output": (unverified(small().nodes, (5, 6)), "return %5, %6: there are 6 nodes"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("rest", ["seen", "new"])
def test_defect_is_reported(rest: str, name: str) -> None:
    """The rest of the graph may have been verified before."""
    graph, sentence = WRONG[name]
    verified: set[Hashable] = set()
    if rest == "seen":
        builder = small()
        verify(builder.graph([builder.value(5), -builder.value(5)]), verified=verified)
    with pytest.raises(MalformedGraph) as raised:
        verify(graph, verified=verified)
    assert sentence in str(raised.value)


def test_error_has_the_node_and_its_op() -> None:
    with pytest.raises(MalformedGraph) as raised:
        verify(altered(3, types=(F,)))
    assert (raised.value.node, raised.value.op) == (3, "sum")


def nested() -> Graph:
    builder = Builder(registry())
    x = builder.leaf(F, 0, "parameter")
    return builder.graph([x.square().sum().grad(x)])


def test_grad_is_valid_until_it_is_expanded() -> None:
    verify(nested())
    with pytest.raises(
        MalformedGraph, match=r"^%3 = grad\(%2, %0\) : float64\[2,3\]: it should have been written out$"
    ):
        verify(nested(), expanded=True)
    verify(expand_grad(nested()), expanded=True)


@pytest.mark.parametrize("use", [lambda graph: make_plan(graph, Limits()), lambda graph: vmap(graph, {0}, 2)])
def test_unexpanded_grad_cannot_run_or_be_vmapped(use: Callable[[Graph], Any]) -> None:
    with pytest.raises(TypeError, match=r"^grad has no (kernel|rules): .* should have been written out$"):
        use(nested())


def test_unexpanded_grad_cannot_be_differentiated() -> None:
    builder = Builder(registry(), nodes=list(nested().nodes))
    with pytest.raises(TypeError, match=r"^grad has no rules"):
        vjp(builder, [(builder.value(3), builder.value(0))], [builder.value(0)])


# ---------------------------------------------------------------- verification in the tests


def count_graphs(make: Callable[[], Any]) -> int:
    before = constructed["graphs"]
    make()
    return constructed["graphs"] - before


@pytest.mark.parametrize("apply", PASSES, ids=lambda apply: apply.__name__)
def test_every_pass_is_verified(apply: Callable[[Graph], Graph]) -> None:
    """The graph has work for each: a constant to fold, and a dead node."""
    builder = small()
    builder.value(5).exp()
    graph = builder.graph([builder.value(5), builder.full((), 1.0, F.dtype).sin()])
    assert count_graphs(lambda: apply(graph)) >= 1


@pytest.mark.parametrize(
    "transform", [lambda: expand_grad(nested()), lambda: vmap(expand_grad(nested()), {0}, 2)], ids=["grad", "vmap"]
)
def test_every_transform_is_verified(transform: Callable[[], Graph]) -> None:
    assert count_graphs(transform) >= 2


def test_graph_of_a_call_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(registry(), [Statement(OPS["input"]), Statement(OPS["grad"], (0, 0))])
    call = Values.of_program(program)
    assert count_graphs(lambda: compiler.write_call(CompileRequest(program, {0: F}, call, Limits()))) >= 2
    monkeypatch.setattr(compiler, "expand_grad", lambda graph, *_: graph)
    with pytest.raises(MalformedGraph, match="it should have been written out"):
        compiler.write_call(CompileRequest(program, {0: F}, call, Limits()))


def test_broken_pass_is_caught() -> None:
    def widen(graph: Graph, _: Allowance) -> Graph:
        nodes = [
            node._replace(types=(F.with_dtype("float32"),)) if node.op.name == "mul" else node for node in graph.nodes
        ]
        return graph.with_nodes(nodes, graph.outputs)

    builder = small()
    with pytest.raises(MalformedGraph, match=r"%2 = mul\(%0, %1\) : float32\[2,3\]: the op infers float64"):
        run_passes(builder.graph([builder.value(5)]), (*PASSES[:1], widen))


# ---------------------------------------------------------------- results of rules


class Misruled(type(OPS["exp"])):  # type: ignore[misc]
    """exp with wrong rules; outside the package, so that the registry does not find it."""

    cotangents: Any = None

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Any]:
        return self.cotangents(g)

    def batch(self, mapped: Sequence[bool], x: Value) -> Value:
        return x.sum(axes=(0,))


def misruled(cotangents: Callable[[Value], Sequence[Any]] = lambda g: (g.sum(),)) -> tuple[Builder, Value, Value]:
    op = Misruled()
    op.cotangents = cotangents
    builder = Builder(registry())
    x = builder.leaf(F, 0, "parameter")
    return builder, x, builder.emit(op, (x,), {})


RULE = r"^%1 = exp\(%0\) : float64\[2,3\]: its rule gives "
SHAPE = RULE + r"%0 : float64\[2,3\] a cotangent of float64\[\]$"


def transforms() -> Iterator[tuple[str, Callable[[Builder, Value, Value], Any]]]:
    yield "vjp", lambda builder, x, y: vjp(builder, [(y, y.full_like(1.0))], [x])
    yield "jvp", lambda builder, x, y: jvp(builder, [y], [(x, x.full_like(1.0))])
    yield "rows", lambda builder, x, y: jacobian(builder, y, [x], 1 << 20)
    yield "columns", lambda builder, x, y: jacobian(builder, y.broadcast_to(shape=(4, 2, 3)), [x], 1 << 20)


@pytest.mark.parametrize("transform", [pytest.param(apply, id=name) for name, apply in transforms()])
def test_wrong_cotangent_shape_names_the_op_of_the_rule(transform: Any) -> None:
    with pytest.raises(MalformedGraph, match=SHAPE):
        transform(*misruled())


@pytest.mark.parametrize("count", [0, 2])
def test_wrong_number_of_cotangents_is_refused(count: int) -> None:
    builder, x, y = misruled(lambda g: (g,) * count)
    with pytest.raises(MalformedGraph, match=RULE + f"{count} cotangents for 1 operand$"):
        vjp(builder, [(y, y.full_like(1.0))], [x])


@pytest.mark.parametrize(
    ("cotangents", "wrong"),
    [
        (lambda g: g, "a Value, not a sequence of values"),
        (lambda g: None, "a NoneType, not a sequence of values"),
        (lambda g: (1.0,), "operand 0 a float, not a value"),
    ],
)
def test_invalid_cotangents_are_refused(cotangents: Any, wrong: str) -> None:
    builder, x, y = misruled(cotangents)
    with pytest.raises(MalformedGraph, match=RULE + f"{wrong}$"):
        vjp(builder, [(y, y.full_like(1.0))], [x])


def test_batching_rule_without_a_result_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    builder, _, y = misruled()
    monkeypatch.setattr(Misruled, "batch", lambda *_: None)
    graph = unverified(builder.nodes, (y.index,))
    with pytest.raises(MalformedGraph, match=r"its batching rule gives a NoneType, not a value$"):
        vmap(graph, {0}, 5)


def test_cotangent_of_another_dtype_is_cast() -> None:
    builder, x, y = misruled(lambda g: (g.cast(dtype="float32"),))
    (cotangent,) = vjp(builder, [(y, y.full_like(1.0))], [x])
    assert cotangent is not None
    assert cotangent.type == x.type


def test_wrong_seed_shape_names_its_node() -> None:
    builder, x, y = misruled()
    with pytest.raises(
        MalformedGraph, match=r"^%1 = exp\(%0\) : float64\[2,3\]: it is given a cotangent of float64\[\]$"
    ):
        vjp(builder, [(y, y.sum())], [x])


def test_wrong_batch_shape_names_the_op_of_the_rule() -> None:
    builder, _, y = misruled()
    graph = unverified(builder.nodes, (y.index,))
    with pytest.raises(
        MalformedGraph, match=r"^%1 = exp\(%0\) : float64\[2,3\]: its batching rule gives float64\[2,3\]"
    ):
        vmap(graph, {0}, 5)
