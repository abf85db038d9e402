"""Matrix products, dense layers and Einstein sums: every combination of ranks, dtypes and memory layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine import Builder, Compiler, Limits, Program, Statement, TensorType, Value, open_executor, registry
from engine.ops.linear import ACTIVATIONS
from engine.passes.pipeline import optimise
from engine.plan import Plan, make_plan
from engine.tensor_type import INTEGERS
from tests.ops.run import Array, error, grads, run

RTOL, ATOL = 1e-12, 1e-13
RNG = np.random.default_rng(0)


def real(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape)


def plan_of(op: str, shapes: Sequence[Sequence[int]], **attrs: Any) -> Plan:
    """The plan of one op on inputs of these shapes; nothing is run."""
    program = Program(
        [
            *[Statement(registry().ops["input"])] * len(shapes),
            Statement(registry().get(op), tuple(range(len(shapes))), attrs),
        ]
    )
    types = {i: TensorType(tuple(shape), np.dtype("float64")) for i, shape in enumerate(shapes)}
    return Compiler(Limits()).forward(program, types).plan


# ---------------------------------------------------------------- matmul

RANKS = [
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (1, 4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)),
    ((1, 1, 3, 4), (6, 2, 4, 5)),
    ((6, 2, 3, 4), (4, 5)),
    ((0, 4), (4, 2)),
    ((2, 0), (0, 3)),
    ((2, 3, 0), (0, 3)),
    ((0, 3, 4), (4, 5)),
    ((1, 1), (1, 1)),
]


def vjp_by_loops(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """The adjoint of a @ b, from its definition: a coordinate at a time."""
    by_a, by_b = np.zeros_like(a), np.zeros_like(b)
    for found, make in ((by_a, lambda unit: unit @ b), (by_b, lambda unit: a @ unit)):
        for place in np.ndindex(found.shape):
            unit = np.zeros_like(found)
            unit[place] = 1
            found[place] = np.sum(make(unit) * g)
    return by_a, by_b


@pytest.mark.parametrize(("a", "b"), RANKS, ids=str)
def test_every_combination_of_ranks(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = real(*a), real(*b)
    expected = np.matmul(left, right)
    g = real(*expected.shape)
    value, gradients = grads("matmul", left, right, cotangent=g)
    assert value.shape == expected.shape
    np.testing.assert_allclose(value, expected, RTOL, ATOL)
    for found, wanted in zip(gradients, vjp_by_loops(left, right, g), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, RTOL, ATOL)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("other", [*INTEGERS, "bool", "float16", "float32", "float64"])
def test_dtypes_are_numpys(dtype: str, other: str) -> None:
    a = RNG.integers(0, 3, (3, 4)).astype(dtype)
    b = RNG.integers(0, 3, (4, 2)).astype(other)
    expected = np.matmul(a, b)
    found = run("matmul", a, b)
    assert found.dtype == (np.int32 if expected.dtype == np.int16 else expected.dtype)
    np.testing.assert_array_equal(found, expected)


def test_integers_wrap_as_numpys_do() -> None:
    a = np.full((1, 2), 100, "int8")
    np.testing.assert_array_equal(run("matmul", a, a.T), np.matmul(a, a.T))


def test_float16_adds_up_in_float32() -> None:
    a = np.ones((1, 4096), "float16")
    assert run("matmul", a, a.T) == 4096
    assert run("matmul", a[0] * 16, a[0] * 16) == np.inf
    assert run("matmul", np.array([[256.0, 256, 256]], "float16"), np.float16([256, 256, -256])) == np.inf
    assert run("matmul", np.float16([300, 300, 1]), np.float16([300, -300, 1])) == 1


def test_gradients_have_the_dtypes_of_their_operands() -> None:
    _, (by_a, by_b) = grads("matmul", real(2, 3).astype("float32"), real(3, 2))
    assert (by_a.dtype, by_b.dtype) == (np.float32, np.float64)
    _, (by_b,) = grads("matmul", RNG.integers(0, 5, (2, 3)), real(3, 2))
    assert by_b.shape == (3, 2)


def laid_out(x: Value) -> list[Value]:
    """x (square) in memory layouts that BLAS does not read, with its values or not."""
    return [
        x.transpose(),
        x.flip(axes=(0,)),
        x.flip(axes=(1,)),
        x.sum(axes=(0,)).broadcast_to(shape=x.shape),
        x.sum(axes=(1,), keepdims=True).broadcast_to(shape=x.shape),
        x.sum().broadcast_to(shape=x.shape),
    ]


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64"])
def test_memory_layouts_make_no_difference(k: int, dtype: str) -> None:
    a, b = (RNG.integers(-3, 3, (3, 3)).astype(dtype) for _ in range(2))
    builder = Builder()
    x, y = builder.leaf(TensorType.of(a), 0), builder.leaf(TensorType.of(b), 1)
    odd, even = laid_out(x)[k], y.transpose()
    graph = builder.graph([odd.identity(), odd @ even, even @ odd])
    copied, left, right = open_executor("cpu").run(make_plan(optimise(graph), Limits()), {0: a, 1: b})
    np.testing.assert_array_equal(left, copied @ b.T)
    np.testing.assert_array_equal(right, b.T @ copied)


def test_flops_are_two_for_each_product() -> None:
    assert plan_of("matmul", [(3, 4), (4, 5)]).flops == 2 * 3 * 4 * 5
    assert plan_of("matmul", [(7, 3, 4), (4, 5)]).flops == 7 * 2 * 3 * 4 * 5
    assert plan_of("matmul", [(4,), (4,)]).flops == 2 * 4


def test_rows_times_a_matrix_need_no_array_for_each_batch() -> None:
    """The gradient of a shared matrix is one product, not a batch of matrices that are then added up."""
    program = Program(
        [
            *[Statement(registry().ops["input"])] * 2,
            Statement(registry().ops["matmul"], (0, 1)),
            Statement(registry().ops["sum"], (2,)),
        ]
    )
    types = {i: TensorType(shape, np.dtype("float64")) for i, shape in enumerate([(1000, 2, 50), (50, 50)])}
    plan = Compiler(Limits()).gradients(program, types, wrt=[1]).plan
    assert plan.peak_bytes < 8 * 1000 * 50 * 50 / 2


def test_shapes_that_do_not_fit() -> None:
    refused = error("matmul", real(2, 3), real(4, 2))
    assert refused.code == "shape_mismatch"
    assert refused.detail == (
        "node 2 (matmul): operand 1 (b) must have extent 3 at axis -2, as operand 0 (a) of shape [2, 3] ends in 3, "
        "but has shape [4, 2]"
    )
    assert (refused.operand, refused.expected, refused.got) == (1, "extent 3 at axis -2", "[4, 2]")
    assert "extent 3 at axis -1" in error("matmul", real(2, 3), real(2)).detail
    assert error("matmul", real(), real(2)).detail == (
        "node 2 (matmul): operand 0 (a) must have at least 1 axis, but is 0-d"
    )
    assert error("matmul", real(2), real()).operand == 1
    assert error("matmul", real(2, 3, 4), real(5, 4, 3)).detail == (
        "node 2 (matmul): operand 1 (b) must have batch axes that broadcast with operand 0 (a) of shape [2, 3, 4], "
        "but has shape [5, 4, 3]"
    )


# ---------------------------------------------------------------- dense layers


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3), (0, 3)], ids=str)
def test_layers_are_their_parts(activation: str, shape: tuple[int, ...]) -> None:
    x, w, b = real(*shape), real(3, 2), real(2)
    parts = x @ w + b
    expected = parts if activation == "none" else run(activation, parts)
    np.testing.assert_allclose(run("linear", x, w, b, activation=activation), expected, RTOL, ATOL)
    np.testing.assert_allclose(run("mlp_layer", x, w.T, b, activation=activation), expected, RTOL, ATOL)


def test_layers_without_activation() -> None:
    x, w, b, g = real(4, 3), real(3, 2), real(2), real(4, 2)
    value, (by_x, by_w) = grads("linear", x, w, cotangent=g)
    np.testing.assert_allclose(value, x @ w, RTOL)
    np.testing.assert_allclose(by_x, g @ w.T, RTOL)
    np.testing.assert_allclose(by_w, x.T @ g, RTOL)
    _, (by_x, by_w, by_b) = grads("mlp_layer", x, w.T, b, cotangent=g)
    np.testing.assert_allclose(by_x, g @ w.T, RTOL)
    np.testing.assert_allclose(by_w, g.T @ x, RTOL)
    np.testing.assert_allclose(by_b, g.sum(axis=0), RTOL)


def test_integer_features() -> None:
    x, w = RNG.integers(0, 5, (4, 3)), real(3, 2)
    np.testing.assert_allclose(run("linear", x, w, activation="tanh"), np.tanh(x @ w), RTOL)
    assert run("linear", x, x.T, activation="relu").dtype == np.int64
    assert run("linear", x, x.T, activation="tanh").dtype == np.float64


WRONG_LAYERS = [
    (
        "linear",
        [(2, 3), (4, 2)],
        "operand 0 (x) must have extent 4 on its last axis, as w of shape [4, 2] takes it in, but has shape [2, 3]",
    ),
    (
        "mlp_layer",
        [(2, 3), (4, 2), (4,)],
        "operand 0 (x) must have extent 2 on its last axis, as w of shape [4, 2] takes it in, but has shape [2, 3]",
    ),
    (
        "linear",
        [(), (3, 2)],
        "operand 0 (x) must have extent 3 on its last axis, as w of shape [3, 2] takes it in, but has shape []",
    ),
    ("linear", [(2, 3), (3,)], "operand 1 (w) must have 2 axes, but has shape [3]"),
    ("linear", [(2, 3), (3, 2), (3,)], "operand 2 (b) must have a shape that broadcasts to [2, 2], but has [3]"),
    ("linear", [(3,), (3, 2), (5, 2)], "operand 2 (b) must have a shape that broadcasts to [2], but has [5, 2]"),
]


@pytest.mark.parametrize(("op", "shapes", "sentence"), WRONG_LAYERS)
def test_layers_that_do_not_fit(op: str, shapes: list[tuple[int, ...]], sentence: str) -> None:
    refused = error(op, *(real(*shape) for shape in shapes))
    assert refused.code == "shape_mismatch"
    assert refused.detail == f"node {len(shapes)} ({op}): {sentence}"


def test_an_unknown_activation() -> None:
    refused = error("linear", real(2, 3), real(3, 2), activation="swish")
    assert refused.code == "bad_attribute"
    assert "one of none, relu, tanh, sigmoid, gelu, silu, elu, selu, sin" in refused.detail


# ---------------------------------------------------------------- einsum

EXTENTS = dict(zip("abcdhijkl", (2, 3, 4, 2, 3, 2, 3, 4, 2), strict=True))
EQUATIONS = [
    "i->i",
    "ij->ji",
    "ij->",
    "ij->j",
    "abcd->dbca",
    "ij,jk->ik",
    "ij,kj->ki",
    "ij,j->i",
    "i,j->ji",
    "ij,ij->",
    "ij,ij->ij",
    "ij,ij->j",
    ",ij->ji",
    ",->",
    "ij,k->ij",
    "aij,ajk->aik",
    "aij,kaj->ika",
    "ahbd,ahcd->ahbc",
    "abhd,achd->ahbc",
    "abc,adc->bd",
    "ij,jk,kl->il",
    "ij,jk,kl->li",
    "abc,cd,bd,d->ad",
    "ai,bi,ci->abc",
    "i,i,i->i",
    "ab,cd,ac->bd",
    "a,b,c,ab,bc->ac",
]


def drawn(equation: str) -> list[Array]:
    return [real(*(EXTENTS[letter] for letter in term)) for term in equation.partition("->")[0].split(",")]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_and_its_gradients(equation: str) -> None:
    operands = drawn(equation)
    terms, _, output = equation.partition("->")
    letters = terms.split(",")
    g = real(*(EXTENTS[letter] for letter in output))
    value, gradients = grads("einsum", *operands, cotangent=g, equation=equation)
    np.testing.assert_allclose(value, np.einsum(equation, *operands), RTOL, ATOL)
    for i, found in enumerate(gradients):
        # The adjoint is an einsum, too; letters that only this operand has are given by a factor of ones.
        others = [(letters[k], operands[k]) for k in range(len(operands)) if k != i] + [(output, g)]
        ones = (letters[i], np.ones_like(operands[i]))
        names, arrays = zip(*others, ones, strict=True)
        expected = np.einsum(f"{','.join(names)}->{letters[i]}", *arrays)
        np.testing.assert_allclose(found, expected, RTOL, ATOL)


def test_spaces_are_ignored() -> None:
    a, b = drawn("ij,jk->ik")
    np.testing.assert_array_equal(
        run("einsum", a, b, equation=" i j , jk -> i k "), run("einsum", a, b, equation="ij,jk->ik")
    )


def test_capitals_are_letters_of_their_own() -> None:
    a = real(2, 3)
    np.testing.assert_allclose(run("einsum", a, equation="iI->I"), a.sum(axis=0), RTOL)


COMMON = [
    (("int8", "int8"), "int8"),
    (("int8", "uint8"), "int32"),
    (("bool", "bool"), "bool"),
    (("int32", "float32"), "float64"),
    (("float16", "float16"), "float16"),
    (("float32", "float64"), "float64"),
]


@pytest.mark.parametrize(("dtypes", "result"), COMMON)
@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,jk->", "ij,ij->ij", "ij,j->"])
def test_the_dtype_is_the_common_one(dtypes: tuple[str, str], result: str, equation: str) -> None:
    a, b = (np.round(x).astype(dtype) for x, dtype in zip(drawn(equation), dtypes, strict=True))
    found = run("einsum", a, b, equation=equation)
    assert found.dtype == result
    wide = [x.astype(result) for x in (a, b)]
    np.testing.assert_array_equal(found, np.einsum(equation, *wide))


def test_narrow_operands_do_not_wrap_before_they_meet_wide_ones() -> None:
    a = np.full(2, 100, "int8")
    assert run("einsum", a, a, np.array(1.0), equation="i,i,->") == 20_000


def test_zero_extents() -> None:
    np.testing.assert_array_equal(
        run("einsum", np.zeros((2, 0)), np.zeros((0, 3)), equation="ij,jk->ik"), np.zeros((2, 3))
    )
    assert run("einsum", np.zeros((0, 2)), equation="ij->ji").shape == (2, 0)


def test_the_order_of_a_chain_is_the_cheap_one() -> None:
    """(A B) v would take n³ multiplications; A (B v) takes n² twice."""
    n = 100
    assert plan_of("einsum", [(n, n), (n, n), (n,)], equation="ij,jk,k->i").flops <= 5 * n * n
    assert plan_of("einsum", [(n,), (n, n), (n, n)], equation="i,ij,jk->k").flops <= 5 * n * n


def test_no_step_costs_more_than_the_loop_over_all_letters() -> None:
    shapes = [(8, 9), (9, 10), (10, 8), (8, 9, 10)]
    assert plan_of("einsum", shapes, equation="ab,bc,ca,abc->").flops <= 2 * 3 * 8 * 9 * 10


def test_many_operands_are_planned_at_once() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFG"
    terms = [letters[i : i + 2] for i in range(32)]
    equation = f"{','.join(terms)}->{letters[0]}{letters[32]}"
    eye = np.eye(2)
    np.testing.assert_array_equal(run("einsum", *[eye] * 32, equation=equation), eye)
    assert error("einsum", *[eye] * 33, equation=equation).code == "operand_count"


WRONG_EQUATIONS = [
    ("ij,jk", "say with -> which letters the result has"),
    ("...ij->ji", "name every axis: an ellipsis is not allowed"),
    ("ij,jk->ik->i", "hold letters a–z and A–Z, commas between operands and one ->, no more"),
    ("ij,j1->i", "hold letters a–z and A–Z, commas between operands and one ->, no more"),
    ("ij,jé->i", "hold letters a–z and A–Z, commas between operands and one ->, no more"),
    ("ij,jk->i,k", "hold letters a–z and A–Z, commas between operands and one ->, no more"),
    ("ij->ji", "name 2 operands"),
    ("ij,jk,kl->il", "name 2 operands"),
    ("ii,ij->j", "name no letter twice in one operand"),
    ("ij,jk->ii", "name no letter twice in the result"),
    ("ij,jk->il", "give the result letters of the operands only"),
    ("->", "name 2 operands"),
    ("", "say with -> which letters the result has"),
]


@pytest.mark.parametrize(("equation", "wanted"), WRONG_EQUATIONS)
def test_wrong_equations(equation: str, wanted: str) -> None:
    refused = error("einsum", real(2, 3), real(3, 4), equation=equation)
    assert refused.code == "bad_attribute"
    assert refused.detail == f"node 2 (einsum): attribute equation must {wanted}, but is “{equation}”"
    assert refused.expected == wanted


def test_operands_that_do_not_fit_the_equation() -> None:
    ranks = error("einsum", real(2, 3), real(3), equation="ij,jk->ik")
    assert ranks.code == "shape_mismatch"
    assert ranks.detail == "node 2 (einsum): operand 1, “jk”, must have 2 axes, but has shape [3]"
    extents = error("einsum", real(2, 3), real(4, 2), equation="ij,jk->ik")
    assert extents.detail == (
        "node 2 (einsum): operand 1, “jk”, must have extent 3 at j, as before, but has shape [4, 2]"
    )
    assert (extents.operand, extents.got) == (1, "[4, 2]")
    assert error("einsum", real(2, 3), equation="ij").code == "bad_attribute"
    assert error("einsum", real(2), equation="i" * 200 + "->").detail.endswith("…”")
