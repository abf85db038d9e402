"""Programs with functions in short notation, and every call on them: helpers for tests of loops.

A Python function of a `Writer` and the numbers of its leaves writes a program. The same function can be passed as an
attribute (a loop body), or called step by step: that unrolled form is the reference for loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from engine import (
    HVP,
    JVP,
    LATEST,
    Batch,
    Call,
    Compiler,
    Deadline,
    DeadlineExceeded,
    Gradients,
    Hessian,
    Limits,
    Program,
    Statement,
    TensorType,
    Values,
    open_executor,
    registry,
)
from engine.autodiff.calls.derivatives import TANGENTS, VECTORS
from engine.ir.program import Function

Array = np.ndarray[Any, Any]
#: appends nodes that read these node numbers, and returns the numbers of the results
Write = Callable[..., Sequence[int]]

EXECUTOR = open_executor("cpu")
_REGISTRY = registry()
#: number of operands of each function attribute, from the numbers of operands and results of the op
_INPUTS: Mapping[str, Callable[[int, int], int]] = {
    "body": lambda operands, results: operands,
    "condition": lambda operands, results: operands,
    "then": lambda operands, results: operands - 1,
    "otherwise": lambda operands, results: operands - 1,
    "derivative": lambda operands, results: operands + 2 * results,
}


class Ticking(Deadline):
    """A deadline that passes after `looks` checks, or for machine code, which reads the clock, after `seconds`."""

    __slots__ = ("left",)

    def __init__(self, looks: int, seconds: float | None = None) -> None:
        super().__init__(seconds)
        self.left = looks

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise DeadlineExceeded("there is no time left")


class Writer:
    """Statements, written by methods named after ops (`g.add(x, y)`, `g.while_(x, …)`), which return node numbers.

    An op that runs functions returns the numbers of all its results.
    """

    def __init__(self, functions: list[Function] | None = None) -> None:
        self.functions: list[Function] = [] if functions is None else functions
        self.statements: list[Statement] = []

    def __getattr__(self, op: str) -> Any:
        return partial(self._run if _REGISTRY.get(op.rstrip("_")).functions else self._add, op.rstrip("_"))

    def _add(self, op: str, *operands: int, **attrs: Any) -> int:
        self.statements.append(Statement(_REGISTRY.get(op), operands, attrs))
        return len(self.statements) - 1

    def _run(self, op: str, *operands: int, **attrs: Any) -> list[int]:
        results = 0
        for name, inputs in _INPUTS.items():
            if name in attrs:
                if callable(attrs[name]):
                    attrs[name] = self.function(attrs[name], inputs(len(operands), results))
                results = results or len(self.functions[attrs[name]].outputs) * (name != "condition")
        node = self._add(op, *operands, **attrs)
        if op in ("while", "fixed_point"):
            results = attrs["carries"] + 2
        return [self._add("get_output", node, index=k) for k in range(results)]

    def number(self, value: Any, dtype: str = "float64") -> int:
        """Add a constant."""
        return self._add("constant", value=np.array(value, dtype))

    def function(self, body: Write, inputs: int) -> int:
        """Add a function of `inputs` operands and return its index."""
        inner = Writer(self.functions)
        outputs = body(inner, *[inner.input() for _ in range(inputs)])
        self.functions.append(Function(_REGISTRY, inner.statements, outputs, functions=tuple(self.functions)))
        return len(self.functions) - 1

    def stacked(self, entries: Sequence[int]) -> int:
        """Stack tensors along a new leading axis."""
        return self._add("stack", *entries, axis=0)


class Written(NamedTuple):
    """A program, its feeds and the nodes of its results; `total` is a scalar that depends on all float results."""

    program: Program
    feeds: dict[int, Array]
    results: tuple[int, ...]
    total: int | None

    @property
    def types(self) -> dict[int, TensorType]:
        """Types of the feeds."""
        return {node: TensorType.of(x) for node, x in self.feeds.items()}

    @property
    def floats(self) -> list[int]:
        """Float leaves, with respect to which derivatives are taken."""
        return [node for node, x in self.feeds.items() if x.dtype.kind == "f"]


def written(write: Write, *arrays: Any, floats: Sequence[int] | None = None, limits: Limits | None = None) -> Written:
    """Build the program on these leaves. `floats` lists the float results; None: all results are."""
    g = Writer()
    feeds = {i: np.asarray(x) for i, x in enumerate(arrays)}
    leaves = [g.parameter() if x.dtype.kind == "f" else g.input() for x in feeds.values()]
    results = tuple(write(g, *leaves))
    indices = range(len(results)) if floats is None else floats
    total = _total(g, [results[k] for k in indices])
    program = Program(_REGISTRY, g.statements, limits, opset=LATEST, functions=g.functions)
    return Written(program, feeds, results, total)


def _total(g: Writer, results: Sequence[int]) -> int | None:
    """Return a sum whose derivatives, of any order, distinguish the results."""
    total = None
    for k, y in enumerate(results):
        wave = g.sin(g.add_scalar(g.cast(y, dtype="float64"), scalar=0.3 + 0.7 * k))
        term = g.sum(g.mul_scalar(wave, scalar=1.0 + 0.25 * k))
        total = term if total is None else g.add(total, term)
    return total


def run(asked: Written, call: Call, extra: Mapping[Any, Array] | None = None) -> list[Array]:
    """Run a call and return its results."""
    compiled = Compiler(asked.program.limits).compile(asked.program, asked.types, call)
    feeds = {**asked.feeds, **(extra or {})}
    return EXECUTOR.run(compiled.plan, {feed: feeds[feed] for feed in compiled.plan.feeds})


def values(write: Write, *arrays: Any) -> list[Array]:
    """Return the results."""
    asked = written(write, *arrays, floats=())
    return run(asked, Values.of_program(asked.program, asked.results))


def gradients(write: Write, *arrays: Any, floats: Sequence[int] | None = None) -> list[Array]:
    """Return the gradients of the total with respect to all float leaves."""
    asked = written(write, *arrays, floats=floats)
    return run(asked, Gradients.of_program(asked.program))[1:]


def lost(write: Write, *arrays: Any, floats: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the float leaves that are disconnected."""
    asked = written(write, *arrays, floats=floats)
    return Compiler(asked.program.limits).gradients(asked.program, asked.types).disconnected


def direction(x: Array, seed: int) -> Array:
    """Return a random direction of x's type."""
    return np.random.default_rng(seed).standard_normal(x.shape).astype(x.dtype)


def hvp(asked: Written) -> list[Array]:
    """Return the Hessian-vector product of the total along a direction for each leaf."""
    vectors = {node: direction(asked.feeds[node], node) for node in asked.floats}
    directions = tuple((node, TensorType.of(v)) for node, v in vectors.items())
    return run(asked, HVP.along(asked.program, directions), {(VECTORS, node): v for node, v in vectors.items()})


def jvp(asked: Written, nodes: Sequence[int]) -> list[Array]:
    """Return the JVP of the results along a direction for each leaf."""
    tangents = {node: direction(asked.feeds[node], node) for node in asked.floats}
    directions = tuple((node, TensorType.of(v)) for node, v in tangents.items())
    call = JVP.of_program(asked.program, directions, nodes)
    return run(asked, call, {(TANGENTS, node): v for node, v in tangents.items()})


def batch(asked: Written, mapped: Sequence[int], *, differentiated: bool) -> list[Array]:
    """Return the results, or the total and its gradients, of a batch along the leading axes of the `mapped` leaves."""
    types = asked.types
    if differentiated:
        return run(asked, Batch.of_program(asked.program, types, mapped))
    values_of = Batch.of_program(asked.program, types, mapped, outputs=asked.results)
    each = Values.of_program(asked.program, asked.results)
    return run(asked, Batch(each.outputs, each, values_of.mapped))


def everything(asked: Written, floats: Sequence[int] | None = None) -> dict[str, list[Array]]:
    """Return the results of every call on one program."""
    results = asked.results if floats is None else [asked.results[k] for k in floats]
    return {
        "values": run(asked, Values.of_program(asked.program, asked.results)),
        "gradients": run(asked, Gradients.of_program(asked.program)),
        "hvp": hvp(asked),
        "jvp": jvp(asked, list(dict.fromkeys(results))),
        "hessian": run(asked, Hessian.of_program(asked.program)),
    }


def same(actual: Sequence[Array], expected: Sequence[Array], within: float, what: str = "") -> None:
    """Assert that types are equal, and numbers within a tolerance; 0: bit for bit."""
    assert [(x.dtype, x.shape) for x in actual] == [(x.dtype, x.shape) for x in expected], what
    for x, y in zip(actual, expected, strict=True):
        if within:
            np.testing.assert_allclose(x, y, rtol=within, atol=within, err_msg=what)
        else:
            np.testing.assert_array_equal(x, y, err_msg=what)


def agree(
    looped: Write,
    plain: Write,
    *arrays: Any,
    floats: Sequence[int] | None = None,
    within: float = 1e-12,
    exact: bool = True,
) -> None:
    """Assert that two programs have equal values, bit for bit if `exact`, and equal derivatives to second order."""
    first, second = (everything(written(write, *arrays, floats=floats), floats) for write in (looped, plain))
    for call, result in first.items():
        same(result, second[call], 0 if exact and call == "values" else within, call)


def agree_in_batches(
    looped: Write,
    plain: Write,
    *arrays: Any,
    mapped: Sequence[Sequence[int]],
    floats: Sequence[int] | None = None,
    within: float = 1e-12,
    size: int = 3,
) -> None:
    """Assert that a batch gives what its examples give one by one, values and gradients, for each set of mapped leaves.

    `arrays` are those of one example; further examples are derived from them.
    """
    for leaves in mapped:
        feeds = [_examples(np.asarray(x), size, i) if i in leaves else np.asarray(x) for i, x in enumerate(arrays)]
        many = written(looped, *feeds, floats=floats)
        singles = []
        for k in range(size):
            one = [x[k] if i in leaves else x for i, x in enumerate(feeds)]
            singles.append(written(plain, *one, floats=floats))
        by_call: list[tuple[bool, Callable[[Written], Call]]] = [
            (False, lambda each: Values.of_program(each.program, each.results)),
            (True, lambda each: Gradients.of_program(each.program)),
        ]
        for differentiated, call in by_call:
            if differentiated and not many.floats:
                continue
            actual = batch(many, leaves, differentiated=differentiated)
            expected = [np.stack(x) for x in zip(*[run(each, call(each)) for each in singles], strict=True)]
            same(actual, expected, within, f"mapped {leaves}, {'gradients' if differentiated else 'values'}")


def _examples(x: Array, size: int, seed: int) -> Array:
    """Return this array and others like it."""
    if x.dtype.kind == "b":
        return np.stack([np.roll(x, k) if x.ndim else x ^ bool(k % 2) for k in range(size)])
    if x.dtype.kind != "f":
        return np.stack([x + np.asarray(k, x.dtype) for k in range(size)])
    drawn = np.random.default_rng(seed + 100).standard_normal((size, *x.shape)) * 0.2
    drawn[0] = 0
    return (x + drawn).astype(x.dtype)


def scan_by_hand(
    g: Writer,
    body: Write,
    consts: Sequence[int],
    carries: Sequence[int],
    sequences: Sequence[int] = (),
    *,
    length: int,
    reverse: bool = False,
) -> list[int]:
    """Unroll a scan of at least one step; return the last carries and the stacks."""
    state, stacks = list(carries), dict[int, list[int]]()
    for t in range(length - 1, -1, -1) if reverse else range(length):
        outputs = body(g, *consts, *state, *[g.select(x, index=t, axis=0) for x in sequences])
        state, stacks[t] = list(outputs[: len(state)]), list(outputs[len(state) :])
    columns = zip(*[stacks[t] for t in range(length)], strict=True)
    return [*state, *[g.stacked(column) for column in columns]]


def random(*shape: int, seed: int = 0, dtype: str = "float64", low: float = -1.0, high: float = 1.0) -> Array:
    """Return random numbers that are the same in every run."""
    drawn = np.random.default_rng([seed, *shape]).uniform(low, high, shape)
    return np.asarray(drawn, dtype)
