"""Memory of a cached plan: its own constants without the request, and as many bytes as it is charged for."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from engine import Compiled, Compiler, Limits, Program, Statement, TensorType, open_executor, registry
from engine.compiler.plan import make_plan
from engine.ir.op import Op
from engine.ir.passes import fold

pytestmark = pytest.mark.slow

FLOAT64 = np.dtype("float64")
CPU = open_executor("cpu")
WIDE = Limits(nodes=1_000_000, bytes=1 << 60, flops=1 << 60)
Array = np.ndarray[Any, Any]


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def compiled(nodes: list[Statement], *shape: int, outputs: range | None = None) -> Compiled:
    """Compile nodes, of which the first is fed: their outputs if given, else gradients."""
    program, types = Program(registry(), nodes), {0: TensorType(shape, FLOAT64)}
    compiler = Compiler(WIDE)
    return compiler.forward(program, types, outputs) if outputs else compiler.gradients(program, types)


def constants(result: Compiled) -> list[Array]:
    return [v for step in result.plan.steps for v in step.attrs.values() if isinstance(v, np.ndarray)]


# ---------------------------------------------------------------- constants


@pytest.mark.usefixtures("own_garbage")
def test_plan_does_not_hold_the_request_body() -> None:
    body = np.arange(1 << 20, dtype=np.float64)
    body_ref = weakref.ref(body)
    statements = [line("parameter"), line("constant", value=body[:3]), line("mul", 0, 1), line("sum", 2)]
    compiler, types = Compiler(Limits()), {0: TensorType((3,), FLOAT64)}
    compiler.gradients(Program(registry(), statements), types)
    again = [line("parameter"), line("constant", value=body[:3].copy()), line("mul", 0, 1), line("sum", 2)]
    del body, statements
    gc.collect()
    assert body_ref() is None
    result = compiler.gradients(Program(registry(), again), types)
    assert result.cached
    np.testing.assert_array_equal(CPU.run(result.plan, {0: np.ones(3)})[1], [0, 1, 2])


def test_changing_a_constant_does_not_affect_its_plan() -> None:
    value = np.array([1.0, 2.0])
    result = compiled([line("parameter"), line("constant", value=value), line("mul", 0, 1), line("sum", 2)], 2)
    value[:] = np.nan
    np.testing.assert_array_equal(CPU.run(result.plan, {0: np.ones(2)})[1], [1, 2])


def test_constants_of_a_plan_are_read_only() -> None:
    nodes = [line("parameter"), line("constant", value=np.array([1.0, 2.0])), line("sin", 1), line("add", 0, 1)]
    result = compiled([*nodes, line("add", 3, 2), line("sum", 4)], 2)
    assert len(constants(result)) == 2
    assert not any(a.flags.writeable for a in constants(result))


def test_folded_constants_are_not_copied() -> None:
    nodes = [line("parameter"), line("constant", value=np.array([1.0, 2.0])), line("sin", 1), line("mul", 0, 2)]
    builder, values = Program(registry(), nodes).build({0: TensorType((2,), FLOAT64)}, [3])
    graph = fold(builder.graph([values[3]]))
    (step,) = (s for s in make_plan(graph, Limits()).steps if np.array_equal(s.attrs.get("value"), np.sin([1.0, 2.0])))
    assert any(node.attrs.get("value") is step.attrs["value"] for node in graph.nodes)


# ---------------------------------------------------------------- size

SHARED = (Op, np.dtype, type, bool, str, type(None))


def reachable_objects(root: Any) -> Iterator[Any]:
    """Yield every object that `root` holds once, except ops, dtypes, names and the small integers of Python."""
    seen, todo = set(), [root]
    while todo:
        x = todo.pop()
        if id(x) in seen or isinstance(x, SHARED) or (isinstance(x, int) and -6 < x < 257):
            continue
        seen.add(id(x))
        yield x
        todo += references(x)


def references(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return [*x.keys(), *x.values()]
    if isinstance(x, tuple | list):
        return list(x)
    if isinstance(x, np.ndarray):
        return [x.base]
    slots = [getattr(x, name) for name in getattr(type(x), "__slots__", ())]
    return [*slots, getattr(x, "__dict__", None)]


def chain(*ops: tuple[str, dict[str, Any]], length: int = 2000) -> list[Statement]:
    """A chain that cycles through these ops, and its sum."""
    links = (ops[i % len(ops)] for i in range(length))
    nodes = [line("parameter"), *(line(op, i, **attrs) for i, (op, attrs) in enumerate(links))]
    return [*nodes, line("sum", length)]


def network() -> list[Statement]:
    """Convolutions and an einsum."""
    nodes = [line("parameter")]
    for _ in range(60):
        kernel = line("constant", value=np.random.default_rng(len(nodes)).normal(size=(3, 3, 3, 3)))
        nodes += [kernel, line("conv2d", len(nodes) - 1, len(nodes), padding=[1, 1]), line("relu", len(nodes) + 1)]
    nodes.append(line("einsum", len(nodes) - 1, len(nodes) - 1, equation="nchw,nchw->"))
    return nodes


def range_of(count: int) -> list[int]:
    return list(range(300, 300 + count))


def many_feeds() -> Compiled:
    nodes = [line("input")] * 2000
    program = Program(registry(), [*nodes, line("cat", *range(2000))])
    return Compiler(WIDE).forward(program, {i: TensorType((1000 + i,), FLOAT64) for i in range(2000)})


MANY = 20_000
PLANS: dict[str, Callable[[], Compiled]] = {
    "a chain": lambda: compiled(chain(("sin", {}), ("exp", {}), ("tanh", {}), ("square", {})), 4),
    "a chain with attributes": lambda: compiled(chain(("mul_scalar", {"scalar": 1.1}), ("sin", {})), 4),
    "a chain of other shapes": lambda: compiled(
        chain(("reshape", {"shape": [1] * 20 + [4]}), ("sin", {}), ("reshape", {"shape": [4, 1]})), 4
    ),
    "a split into equal parts": lambda: compiled(
        [line("input"), line("split", 0, sizes=[1] * MANY), line("get_output", 1, index=3)], MANY, outputs=range(2, 3)
    ),
    "a split into other parts": lambda: compiled(
        [line("input"), line("split", 0, sizes=range_of(MANY)), line("get_output", 1, index=3)],
        sum(range_of(MANY)),
        outputs=range(2, 3),
    ),
    "many results": lambda: compiled(
        [line("input"), *(line("mul_scalar", 0, scalar=float(i)) for i in range(2, 3000))], 4, outputs=range(1, 2999)
    ),
    "many feeds": many_feeds,
    "a network": lambda: compiled(network(), 2, 3, 8, 8),
    "a large constant": lambda: compiled(
        [line("parameter"), line("constant", value=np.arange(1e5)), line("mul", 0, 1), line("sum", 2)], 100_000
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_plan_size_matches_its_objects(name: str) -> None:
    result = PLANS[name]()
    measured = sum(map(sys.getsizeof, reachable_objects(result)))
    assert 0.5 * measured <= result.nbytes <= 2 * measured
