"""Data movement against NumPy, gradients against the inverse movement, and exact error messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import COTANGENTS, Limits, Program, Statement, TensorType, registry
from engine.compiler.compiler import Compiler
from engine.ir.errors import EngineError
from engine.ir.op import Array
from tests.engine.ops.run import EXECUTOR, error, grads, run
from tests.sampling import together

RNG = np.random.default_rng(7)


def numbers(*shape: int, dtype: str = "float64") -> Array:
    """Return distinct numbers, so that a wrong position shows."""
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def assert_identical(actual: Array, expected: Any) -> None:
    """Assert equal shape, dtype and values."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


MOVES = [
    ("reshape", (2, 3), {"shape": [3, -1]}, lambda x: x.reshape(3, 2)),
    ("reshape", (0, 3), {"shape": [-1]}, lambda x: x.reshape(0)),
    ("reshape", (1, 1), {}, lambda x: x.reshape(())),
    ("transpose", (2, 3, 4), {}, lambda x: x.swapaxes(1, 2)),
    ("transpose", (2, 3, 4), {"axes": [0, 2]}, lambda x: x.swapaxes(0, 2)),
    ("transpose", (2, 3, 4), {"axes": [1, 2, 0]}, lambda x: x.transpose(1, 2, 0)),
    ("transpose", (2, 3), {"axes": [0, 1]}, lambda x: x),
    ("broadcast_to", (3, 1), {"shape": [2, 3, 4]}, lambda x: np.broadcast_to(x, (2, 3, 4))),
    ("broadcast_to", (1,), {"shape": [0]}, lambda x: np.broadcast_to(x, (0,))),
    ("squeeze", (1, 2, 1, 3), {}, np.squeeze),
    ("squeeze", (1, 2, 1, 3), {"axes": [-2]}, lambda x: x.squeeze(2)),
    ("squeeze", (2, 3), {}, lambda x: x),
    ("squeeze", (), {}, lambda x: x),
    ("unsqueeze", (2, 3), {"axes": [-1, 0]}, lambda x: np.expand_dims(x, (0, -1))),
    ("unsqueeze", (), {"axes": [0, 1]}, lambda x: x.reshape(1, 1)),
    ("flatten", (2, 3, 4), {}, lambda x: x.reshape(24)),
    ("flatten", (2, 3, 4), {"axes": [2, 1]}, lambda x: x.reshape(2, 12)),
    ("flatten", (2, 0, 4), {"axes": [0]}, lambda x: x),
    ("flatten", (), {}, lambda x: x.reshape(1)),
    ("slice", (5, 6), {"starts": [-3, 1], "stops": [9, -1], "steps": [1, 2]}, lambda x: x[-3:9, 1:-1:2]),
    ("slice", (7,), {"steps": [3]}, lambda x: x[::3]),
    ("slice", (7,), {"starts": [5], "stops": [2]}, lambda x: x[5:2]),
    ("slice", (7,), {"starts": [-99], "stops": [99], "steps": [2**62]}, lambda x: x[:1]),
    ("slice", (7,), {"starts": [2**63 - 1]}, lambda x: x[7:]),
    ("slice", (), {}, lambda x: x),
    ("slice", (5, 6, 2), {"starts": [1], "stops": [-1, 4]}, lambda x: x[1:-1, :4]),
    ("slice", (5, 6, 2), {"starts": [], "steps": [2]}, lambda x: x[::2]),
    ("select", (5, 6), {"index": 2}, lambda x: x[2]),
    ("select", (5, 6, 2), {"index": -6, "axis": -2}, lambda x: x[:, 0]),
    ("select", (5,), {"index": 4}, lambda x: x[4]),
    ("pad", (2, 3), {"pad_width": [1, 0, 2, 1]}, lambda x: np.pad(x, [(1, 0), (2, 1)])),
    ("pad", (0,), {"pad_width": [1, 2], "fill": -3.0}, lambda x: np.full(3, -3.0)),
    ("flip", (2, 3), {}, np.flip),
    ("flip", (2, 3, 4), {"axes": [0, -1]}, lambda x: np.flip(x, (0, 2))),
    ("flip", (), {}, lambda x: x),
    ("roll", (2, 3), {"shifts": [4]}, lambda x: np.roll(x, 4)),
    ("roll", (2, 3), {"shifts": [-1, 2**62], "axes": [0, 1]}, lambda x: np.roll(x, (-1, 2**62 % 3), (0, 1))),
    ("roll", (0, 3), {"shifts": [5]}, lambda x: x),
    ("roll", (), {"shifts": [5]}, lambda x: x),
    ("tile", (2, 3), {"repeats": [2]}, lambda x: np.tile(x, 2)),
    ("tile", (2, 3), {"repeats": [3, 1, 2]}, lambda x: np.tile(x, (3, 1, 2))),
    ("tile", (2, 3), {"repeats": [2, 0]}, lambda x: np.tile(x, (2, 0))),
    ("tile", (), {"repeats": [2, 2]}, lambda x: np.tile(x, (2, 2))),
    ("tril", (3, 4), {"offset": 1}, lambda x: np.tril(x, 1)),
    ("tril", (2, 3, 3), {}, np.tril),
    ("tril", (3, 3), {"offset": -(2**63)}, lambda x: 0 * x),
    ("triu", (3, 4), {"offset": -1}, lambda x: np.triu(x, -1)),
    ("triu", (2, 3, 3), {"offset": 1}, lambda x: np.triu(x, 1)),
    ("triu", (3, 3), {"offset": 2**63 - 1}, lambda x: 0 * x),
    ("diag", (3,), {"offset": -1}, lambda x: np.diag(x, -1)),
    ("diag", (3,), {}, np.diag),
    ("diag", (0,), {"offset": 2}, lambda x: np.zeros((2, 2))),
    ("diag", (0,), {}, lambda x: np.zeros((0, 0))),
    ("diag", (4, 4), {}, np.diagonal),
    ("diag", (2, 5), {"offset": 1}, lambda x: np.diagonal(x, 1)),
    ("diag", (3, 5), {"offset": 1}, lambda x: np.diagonal(x, 1)),
    ("diag", (5, 3), {"offset": -3}, lambda x: np.diagonal(x, -3)),
    ("diag", (2, 4, 3), {"offset": 2}, lambda x: np.diagonal(x, 2, -2, -1)),
    ("diag", (2, 4, 3), {"offset": 2**62}, lambda x: np.zeros((2, 0))),
    ("diag", (2, 0, 3), {}, lambda x: np.zeros((2, 0))),
]  # fmt: skip


@together
@pytest.mark.parametrize(("op", "shape", "attrs", "reference"), MOVES)
@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "bool"])
def test_values_match_numpy(op: str, shape: tuple[int, ...], attrs: dict[str, Any], reference: Any, dtype: str) -> None:
    x = numbers(*shape, dtype=dtype)
    if dtype == "bool" and "fill" in attrs:
        assert error(op, x, **attrs).code == "bad_attribute"
    else:
        assert_identical(run(op, x, **attrs), np.asarray(reference(x)).astype(dtype))


@pytest.mark.parametrize(("op", "shape", "attrs", "reference"), MOVES)
def test_gradients_add_up_at_source_positions(
    op: str, shape: tuple[int, ...], attrs: dict[str, Any], reference: Any
) -> None:
    """The moved positions show which entry of x each entry of y is (0: none); weights are summed at these entries."""
    positions = np.asarray(reference(numbers(*shape)))
    if attrs.get("fill"):
        positions = np.where(positions == attrs["fill"], 0, positions)
    weights = RNG.integers(1, 100, positions.shape).astype(float)
    expected = np.bincount(positions.astype(int).ravel(), weights.ravel(), 1 + np.prod(shape, dtype=int))[1:]
    _, (gradient,) = grads(op, numbers(*shape), cotangent=weights, **attrs)
    assert_identical(gradient, expected.reshape(shape).astype(float))


def test_infinities_outside_a_triangle_become_zero() -> None:
    x = np.full((3, 3), np.inf)
    assert_identical(run("tril", x), np.where(np.tri(3), np.inf, 0.0))
    assert_identical(run("triu", -x), np.where(np.tri(3).T, -np.inf, 0.0))
    _, (gradient,) = grads("tril", x, cotangent=x)
    assert_identical(gradient, np.where(np.tri(3), np.inf, 0.0))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cat_and_stack(axis: int) -> None:
    xs = [numbers(2, 3), 10 * numbers(2, 3), 100 * numbers(2, 3)]
    for op, reference in (("cat", np.concatenate), ("stack", np.stack)):
        weights = RNG.normal(size=reference(xs, axis).shape)
        value, gradients = grads(op, *xs, axis=axis, cotangent=weights)
        assert_identical(value, reference(xs, axis))
        parts = np.split(weights, 3, axis) if op == "cat" else [weights.take(i, axis) for i in range(3)]
        for gradient, part in zip(gradients, parts, strict=True):
            assert_identical(gradient, part)


def test_cat_and_stack_promote_dtypes() -> None:
    for a, b, expected in (("int8", "uint8", "int16"), ("float16", "int8", "float16"), ("bool", "bool", "bool")):
        assert run("cat", numbers(2, dtype=a), numbers(2, dtype=b)).dtype == expected
        assert run("stack", numbers(2, dtype=a), numbers(2, dtype=b)).dtype == expected
    _, gradients = grads("cat", numbers(2, dtype="float32"), numbers(1), numbers(3, dtype="int32"))
    assert [g.dtype for g in gradients] == ["float32", "float64"]


def test_repeated_operand_gets_the_sum_of_gradients() -> None:
    ops = registry().ops
    program = Program(
        registry(), [Statement(ops["input"]), Statement(ops["cat"], (0, 0)), Statement(ops["square"], (1,))]
    )
    x = numbers(3)
    compiled = Compiler(Limits()).gradients(
        program, {0: TensorType.of(x)}, wrt=[0], cotangent=TensorType((6,), x.dtype)
    )
    actual = EXECUTOR.run(compiled.plan, {0: x, (COTANGENTS, 2): np.ones(6)})
    assert_identical(actual[1], 4 * x)


def parts_of(op: str, x: Array, reads: list[int], **attrs: Any) -> tuple[list[Array], Array]:
    """Return some results of an op with several, and the gradient of the sum of their squares."""
    ops = registry().ops
    statements = [Statement(ops["parameter"]), Statement(op=ops[op], operands=(0,), attrs=attrs)]
    statements += [Statement(ops["get_output"], (1,), {"index": i}) for i in reads]
    squares = range(len(statements), len(statements) + len(reads))
    statements += [Statement(ops["square"], (2 + i,)) for i in range(len(reads))]
    statements += [Statement(ops["sum"], (i,)) for i in squares]
    total = len(statements)
    statements.append(Statement(ops["stack"], tuple(range(total - len(reads), total))))
    statements.append(Statement(ops["sum"], (total,)))
    outputs = [*range(2, 2 + len(reads))]
    compiled = Compiler(Limits()).gradients(Program(registry(), statements), {0: TensorType.of(x)}, outputs=outputs)
    *values, gradient = EXECUTOR.run(compiled.plan, {0: x})
    return values, gradient


@pytest.mark.parametrize(
    ("extent", "chunks", "sizes"),
    [(6, 4, [2, 2, 2]), (5, 2, [3, 2]), (7, 3, [3, 3, 1]), (3, 9, [1, 1, 1]), (4, 1, [4]), (0, 3, [0, 0, 0])],
)
def test_chunk_sizes_match_pytorch(extent: int, chunks: int, sizes: list[int]) -> None:
    x = numbers(2, extent)
    values, gradient = parts_of("chunk", x, [*range(len(sizes))], chunks=chunks, axis=1)
    for value, expected in zip(values, np.split(x, np.cumsum(sizes)[:-1], 1), strict=True):
        assert_identical(value, expected)
    assert_identical(gradient, 2 * x)


def test_unread_parts_contribute_zero() -> None:
    x = numbers(6)
    values, gradient = parts_of("split", x, [2], sizes=[1, 2, 2, 1])
    assert_identical(values[0], x[3:5])
    assert_identical(gradient, np.array([0, 0, 0, 8, 10, 0.0]))
    _, gradient = parts_of("chunk", x, [0, 2, 0], chunks=3)
    assert_identical(gradient, np.array([4, 8, 0, 0, 10, 12.0]))


def test_too_many_parts_are_over_budget() -> None:
    expected = "node 1 (chunk): makes at most 100000 parts, but this would be 9223372036854775807 parts"
    ops, x = registry().ops, numbers(0)
    chunk = Statement(ops["chunk"], (0,), {"chunks": 2**63 - 1})
    program = Program(registry(), [Statement(ops["input"]), chunk, Statement(ops["get_output"], (1,), {"index": 0})])
    with pytest.raises(EngineError) as caught:
        Compiler(Limits()).forward(program, {0: TensorType.of(x)})
    assert (caught.value.code, caught.value.detail) == ("over_budget", expected)


def test_part_count_may_reach_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.ops.shape.cat.MOST_PARTS", 3)
    assert_identical(parts_of("chunk", numbers(6), [2], chunks=3)[0][0], numbers(6)[4:])
    with pytest.raises(EngineError, match="makes at most 3 parts, but this would be 6 parts"):
        parts_of("chunk", numbers(6), [2], chunks=6)


@pytest.mark.parametrize(
    ("op", "shape", "attrs"),
    [
        ("diag", (1,), {"offset": 2**62}),
        ("diag", (0,), {"offset": -(2**63)}),
        ("tile", (2,), {"repeats": [2**62, 2**62]}),
        ("tile", (0,), {"repeats": [2**62]}),
        ("pad", (2,), {"pad_width": [2**62, 2**62]}),
        ("broadcast_to", (1,), {"shape": [2**62, 2**62]}),
        ("unsqueeze", (2,), {"axes": list(range(64))}),
        ("tile", (2,), {"repeats": [1] * 40}),
        ("reshape", (1,), {"shape": [1] * 128}),
    ],
)
def test_too_large_result_is_refused_before_allocation(op: str, shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    assert error(op, numbers(*shape), **attrs).code == "over_budget"


WRONG = [
    ("reshape", [(2, 3)], {"shape": [4, -1]}, "shape [2, 3] has 6 elements and cannot be reshaped to [4, -1]"),
    ("reshape", [(2, 3)], {"shape": [-1, -1]}, "shape may contain only one -1, but is [-1, -1]"),
    ("reshape", [(6,)], {"shape": [2, 3], "original_shape": [3, 2]},
     "original_shape is [3, 2], but the operand has shape [6]"),
    ("transpose", [(3,)], {}, "needs at least 2 axes to swap the last two, but the operand has 1"),
    ("transpose", [(2, 3, 4)], {"axes": [1]},
     "axes must be a permutation of 3 axes, or two axes to swap, but is [1]"),
    ("transpose", [(2, 3)], {"axes": [1, 1]}, "axes names an axis twice: [1, 1]"),
    ("broadcast_to", [(2, 3)], {"shape": [2, 4]}, "shape [2, 3] does not broadcast to [2, 4]"),
    ("squeeze", [(1, 3)], {"axes": [1]}, "axis 1 has extent 3, and only an axis of extent 1 can be squeezed"),
    ("unsqueeze", [(3,)], {}, "attribute axes is required"),
    ("unsqueeze", [(3,)], {"axes": [2]}, "axes must be between -2 and 1, but is 2"),
    ("flatten", [(2, 3, 4)], {"axes": [0, 2]},
     "attribute axes must be neighbouring axes, such as [1, 2], but is [0, 2]"),
    ("cat", [()], {}, "needs at least 1 axis to join along (stack makes one), but the operand has 0"),
    ("cat", [(2, 3), (2, 4)], {},
     "operand 1 (x) must have shape [any, 3], like operand 0 except on axis 0, but has [2, 4]"),
    ("cat", [(2, 3), (2,)], {},
     "operand 1 (x) must have shape [any, 3], like operand 0 except on axis 0, but has [2]"),
    ("cat", [(2,), (3,)], {"sizes": [2, 2]}, "sizes is [2, 2], but the operands have [2, 3] on the axis"),
    ("stack", [(2,), (3,)], {}, "operand 1 (x) must have shape [2], like operand 0, but has [3]"),
    ("stack", [(2,)], {"axis": 2}, "axis must be between -2 and 1, but is 2"),
    ("slice", [(2, 3)], {"starts": [1, 0, 0]},
     "attribute starts must have at most 2 entries, one for each axis, but has 3 entries"),
    ("select", [()], {"index": 0}, "needs at least 1 axis to select on, but the operand has 0"),
    ("select", [(2, 3)], {"index": 0, "axis": 2}, "axis must be between -2 and 1, but is 2"),
    ("select", [(2, 3)], {"index": 3, "axis": 1}, "attribute index must be between -3 and 2 on axis 1, but is 3"),
    ("select", [(2, 3)], {"index": -3}, "attribute index must be between -2 and 1 on axis 0, but is -3"),
    ("select", [(0, 3)], {"index": 0}, "attribute index must name an entry of axis 0, but its extent is 0"),
    ("slice", [(2,)], {"steps": [0]}, "attribute steps must be whole numbers of at least 1, but is [0]"),
    ("pad", [(2, 3)], {"pad_width": [1, 1]},
     "attribute pad_width must have 4 entries, before and after each axis, but has 2"),
    ("pad", [(2,)], {"pad_width": [-1, 1]},
     "attribute pad_width must be whole numbers of at least 0, but is [-1, 1]"),
    ("roll", [(2, 3)], {"shifts": [1, 2]}, "attribute shifts must have length 1, without axes, but has 2"),
    ("roll", [(2, 3)], {"shifts": [1], "axes": [0, 1]},
     "attribute shifts must have length 2, one for each entry of axes, but has 1"),
    ("tril", [(3,)], {}, "needs at least 2 axes that hold matrices, but the operand has 1"),
    ("diag", [()], {}, "needs at least 1 axis to have a diagonal or to be one, but the operand has 0"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shapes", "attrs", "sentence"), WRONG)
def test_invalid_operands_are_refused(
    op: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], sentence: str
) -> None:
    refused = error(op, *(numbers(*shape) for shape in shapes), **attrs)
    assert refused.detail == f"node {len(shapes)} ({op}): {sentence}"
    assert refused.code in ("bad_attribute", "shape_mismatch")
    assert refused.expected


@pytest.mark.parametrize(
    ("attrs", "sentence"),
    [
        ({"sizes": [2, 2]}, "attribute sizes must add up to 5, the extent of axis 0, but adds up to 4"),
        ({"sizes": [-1, 6]}, "attribute sizes must be whole numbers of at least 0, but is [-1, 6]"),
        ({"sizes": []}, "attribute sizes must name at least one part"),
    ],
)
def test_invalid_split_sizes_are_refused(attrs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EngineError) as caught:
        parts_of("split", numbers(5), [0], **attrs)
    assert caught.value.detail == f"node 1 (split): {sentence}"


def test_output_index_out_of_range_is_refused() -> None:
    with pytest.raises(EngineError, match="2"):
        parts_of("split", numbers(5), [2], sizes=[2, 3])
