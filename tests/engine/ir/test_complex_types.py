"""Complex dtypes: differentiable but not float; their promotion, attributes, gradients and ops."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import (
    DTYPES,
    OPSET,
    Builder,
    Compiler,
    EngineError,
    Limits,
    Program,
    Statement,
    TensorType,
    open_executor,
    registry,
)
from engine.autodiff.vjp import vjp
from engine.compiler.plan import make_plan
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import COMPLEX, REALS, complex_dtype, has_infinities, has_kernels, promote
from engine.ir.text import parse_graph, print_graph
from engine.ops.common.numerics import known_finite, known_without_nan

OPS = registry().ops
TYPE = TensorType((2,), np.dtype("complex128"))
#: ops that the opset promises to take complex operands, with those that only move elements or run functions
COMPLEX_OPS = """
add sub mul div neg reciprocal square pow_scalar add_scalar sub_scalar mul_scalar div_scalar exp log sqrt
rsqrt sin cos tanh sinh cosh sigmoid abs sum mean prod cumsum cumprod matmul einsum linear solve inv
triangular_solve cholesky slogdet where is_finite equal not_equal scatter_add segment_sum real imag conj angle
cast input parameter get_output identity stop_gradient copy_to_device flatten reshape transpose squeeze
unsqueeze slice select pad cat stack split chunk flip roll tile broadcast_to gather take_along index index_add
index_set embedding struct_field map_lookup diag tril triu slice_at update_slice update_slice_at compress scan
while cond map call fixed_point grad
"""


def typed(statements: list[tuple[str, tuple[int, ...], dict[str, Any]]], feeds: dict[int, str], opset: int = 2) -> Any:
    """Compile a graph with feeds of these dtypes."""
    nodes = [Statement(OPS[op], operands, attrs) for op, operands, attrs in statements]
    program = Program(registry(), nodes, opset=opset)
    types = {i: TensorType((2,), np.dtype(dtype)) for i, dtype in feeds.items()}
    return Compiler(limits=Limits()).forward(program, types, outputs=[len(nodes) - 1])


def refused(*args: Any, **options: Any) -> EngineError:
    with pytest.raises(EngineError) as caught:
        typed(*args, **options)
    return caught.value


def test_complex_is_differentiable_but_not_float() -> None:
    assert (TYPE.is_differentiable, TYPE.is_float, TYPE.is_complex) == (True, False, True)


def test_complex_may_be_infinite_and_has_no_kernels() -> None:
    nan, run = np.array([np.nan, 1j]), RunContext(np)
    assert (has_infinities(TYPE.dtype), has_kernels(TYPE.dtype)) == (True, False)
    assert (known_finite(run, nan), known_without_nan(run, nan)) == (False, False)


def test_ops_that_accept_complex_match_the_promise() -> None:
    """No other ops of opset 1 do; some later ones were added for complex numbers."""
    accepting = {name for name, op in OPS.items() if {*COMPLEX} <= {*op.dtypes}}
    assert accepting >= {*COMPLEX_OPS.split()}
    assert {name for name in accepting if OPS[name].since == OPSET} <= {*COMPLEX_OPS.split()}


@pytest.mark.parametrize(("a", "b"), [*product(DTYPES, COMPLEX)])
def test_complex_promotion_matches_numpy(a: str, b: str) -> None:
    expected = np.result_type(np.dtype(a), np.dtype(b))
    assert promote(np.dtype(a), np.dtype(b)) == promote(np.dtype(b), np.dtype(a)) == expected


def test_scalar_attributes_are_real() -> None:
    x = Builder(registry()).leaf(TYPE, "x")
    assert type((x * 2).node.attrs["scalar"]) is type((x**2).node.attrs["exponent"]) is float
    assert type(x.full_like(1).node.attrs["fill"]) is float
    with pytest.raises(TypeError):
        x * 2j


def test_complex_sums_keep_the_dtype() -> None:
    x = Builder(registry()).leaf(TYPE, "x")
    assert {str(y.dtype) for y in (x.mean(), x.cumsum(axis=0), x.sum(), x.prod())} == {"complex128"}


def test_gradients_are_adjoints() -> None:
    """Computed by hand: y = Σ x·w + x, so that dx = conj w + 1 and dw = conj x."""
    builder = Builder(registry())
    x, w = builder.leaf(TYPE, "x"), builder.leaf(TYPE, "w")
    y = ((x * w) + x.cast(dtype=TYPE.dtype)).sum()
    gradients = vjp(builder, [(y, builder.constant(np.array(1, "complex128")))], [x, w])
    assert [str(g.type) for g in gradients if g is not None] == ["complex128[2]", "complex128[2]"]
    plan = make_plan(builder.graph([y, *(g for g in gradients if g is not None)]), Limits())
    results = open_executor("cpu").run(plan, {"x": np.array([1 + 2j, 3j]), "w": np.array([2, 1j])})
    assert [r.tolist() for r in results] == [9j, [3, 1 - 1j], [1 - 2j, -3j]]


INPUT = ("input", (), {})


@pytest.mark.parametrize("dtype", REALS)
def test_cast_from_complex_to_real_is_refused(dtype: str) -> None:
    error = refused([INPUT, ("cast", (0,), {"dtype": dtype})], {0: "complex64"})
    assert (error.code, error.node) == ("dtype_mismatch", 1)
    assert error.detail.endswith(f"is complex64, which cast cannot convert to {dtype}: use real, imag or abs")


@pytest.mark.parametrize("op", ["maximum", "relu", "floor", "mod", "sort", "tan", "norm", "softmax"])
def test_unsupported_ops_refuse_complex(op: str) -> None:
    operands = (0,) * len(OPS[op].operands)
    error = refused([INPUT, (op, operands, {"axis": 0} if op == "sort" else {})], {0: "complex128"})
    assert (error.code, error.node, error.got) == ("dtype_mismatch", 1, "complex128")


@pytest.mark.parametrize("op", ["arange", "one_hot"])
def test_arange_and_one_hot_refuse_a_complex_dtype(op: str) -> None:
    attrs = {"arange": {"stop": 3.0}, "one_hot": {"classes": 3}}[op]
    operands = (0,) if op == "one_hot" else ()
    error = refused([INPUT, (op, operands, {**attrs, "dtype": "complex64"})], {0: "int64"})
    assert (error.code, error.detail.split(": ")[1]) == (
        "dtype_mismatch",
        "attribute dtype must be a dtype that is not complex, but is complex64",
    )


@pytest.mark.parametrize("dtype", COMPLEX)
def test_opset_1_refuses_complex(dtype: str) -> None:
    by_feed = refused([INPUT, ("neg", (0,), {})], {0: dtype}, opset=1)
    by_attribute = refused([INPUT, ("cast", (0,), {"dtype": dtype})], {0: "float64"}, opset=1)
    by_constant = refused([("constant", (), {"value": np.array([1j], dtype)})], {}, opset=1)
    for error, node in ((by_feed, 0), (by_attribute, 1), (by_constant, 0)):
        assert (error.code, error.node) == ("dtype_mismatch", node)
        assert f"{dtype}, which needs opset 2" in error.detail


def test_complex_constant_round_trips_through_text() -> None:
    builder = Builder(registry())
    x = builder.leaf(TYPE, "x")
    text = print_graph(builder.graph([x * builder.constant(np.array([1 + 2j, -0.5j]))]))
    assert '%1 = constant {"value": [1.0, 2.0, -0.0, -0.5]} : complex128[2]' in text
    assert print_graph(parse_graph(text, registry())) == text


def test_complex_matmul_has_four_times_the_flops() -> None:
    counts = []
    for dtype in ("float64", "complex128"):
        builder = Builder(registry())
        a, b = (builder.leaf(TensorType((8, 8), np.dtype(dtype)), name) for name in "ab")
        counts.append(make_plan(builder.graph([a @ b]), Limits()).flops)
    assert counts[1] == 4 * counts[0] == 4 * 2 * 8**3


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["float16"], "complex64"),
        (["float32", "float16"], "complex64"),
        (["float64"], "complex128"),
        (["complex64"], "complex64"),
        (["complex64", "float64"], "complex128"),
        (["bool"], "complex128"),
        (["float16", "int8"], "complex128"),
    ],
)
def test_complex_dtype_of_a_spectrum(dtypes: list[str], expected: str) -> None:
    assert complex_dtype(*map(np.dtype, dtypes)) == expected
