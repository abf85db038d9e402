"""Einstein sums: every kind of equation, gradients, cost, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.planned import plan_of
from tests.engine.ops.run import Array, error, grads, run

RTOL, ATOL = 1e-12, 1e-13
RNG = np.random.default_rng(0)


def real(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape)


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


def draw_operands(equation: str) -> list[Array]:
    return [real(*(EXTENTS[letter] for letter in term)) for term in equation.partition("->")[0].split(",")]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_values_and_gradients_match_numpy(equation: str) -> None:
    operands = draw_operands(equation)
    terms, _, output = equation.partition("->")
    letters = terms.split(",")
    g = real(*(EXTENTS[letter] for letter in output))
    value, gradients = grads("einsum", *operands, cotangent=g, equation=equation)
    np.testing.assert_allclose(value, np.einsum(equation, *operands), RTOL, ATOL)
    for i, actual in enumerate(gradients):
        # The adjoint is an einsum, too; letters that only this operand has are covered by a factor of ones.
        others = [(letters[k], operands[k]) for k in range(len(operands)) if k != i] + [(output, g)]
        ones = (letters[i], np.ones_like(operands[i]))
        names, arrays = zip(*others, ones, strict=True)
        expected = np.einsum(f"{','.join(names)}->{letters[i]}", *arrays)
        np.testing.assert_allclose(actual, expected, RTOL, ATOL)


def test_spaces_are_ignored() -> None:
    a, b = draw_operands("ij,jk->ik")
    np.testing.assert_array_equal(
        run("einsum", a, b, equation=" i j , jk -> i k "), run("einsum", a, b, equation="ij,jk->ik")
    )


def test_upper_case_letters_are_distinct() -> None:
    a = real(2, 3)
    np.testing.assert_allclose(run("einsum", a, equation="iI->I"), a.sum(axis=0), RTOL)


COMMON = [
    (("int8", "int8"), "int8"),
    (("int8", "uint8"), "int16"),
    (("bool", "bool"), "bool"),
    (("int32", "float32"), "float64"),
    (("float16", "float16"), "float16"),
    (("float32", "float64"), "float64"),
]


@pytest.mark.parametrize(("dtypes", "result"), COMMON)
@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,jk->", "ij,ij->ij", "ij,j->"])
def test_result_has_the_common_dtype(dtypes: tuple[str, str], result: str, equation: str) -> None:
    a, b = (np.round(x).astype(dtype) for x, dtype in zip(draw_operands(equation), dtypes, strict=True))
    actual = run("einsum", a, b, equation=equation)
    assert actual.dtype == result
    wide = [x.astype(result) for x in (a, b)]
    np.testing.assert_array_equal(actual, np.einsum(equation, *wide))


def test_narrow_integers_do_not_overflow_before_promotion() -> None:
    a = np.full(2, 100, "int8")
    assert run("einsum", a, a, np.array(1.0), equation="i,i,->") == 20_000


def test_extents_of_zero() -> None:
    np.testing.assert_array_equal(
        run("einsum", np.zeros((2, 0)), np.zeros((0, 3)), equation="ij,jk->ik"), np.zeros((2, 3))
    )
    assert run("einsum", np.zeros((0, 2)), equation="ij->ji").shape == (2, 0)


def test_chain_is_contracted_in_the_cheapest_order() -> None:
    """(A B) v would take n³ multiplications; A (B v) takes n² twice."""
    n = 100
    assert plan_of("einsum", (n, n), (n, n), (n,), equation="ij,jk,k->i").flops <= 5 * n * n
    assert plan_of("einsum", (n,), (n, n), (n, n), equation="i,ij,jk->k").flops <= 5 * n * n


def test_no_step_costs_more_than_a_loop_over_all_letters() -> None:
    shapes = [(8, 9), (9, 10), (10, 8), (8, 9, 10)]
    assert plan_of("einsum", *shapes, equation="ab,bc,ca,abc->").flops <= 2 * 3 * 8 * 9 * 10


def test_32_operands_are_accepted() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFG"
    terms = [letters[i : i + 2] for i in range(32)]
    equation = f"{','.join(terms)}->{letters[0]}{letters[32]}"
    eye = np.eye(2)
    np.testing.assert_array_equal(run("einsum", *[eye] * 32, equation=equation), eye)
    assert error("einsum", *[eye] * 33, equation=equation).code == "operand_count"


WRONG_EQUATIONS = [
    ("ij,jk", "give the letters of the result after ->"),
    ("...ij->ji", "name every axis: an ellipsis is not allowed"),
    ("ij,jk->ik->i", "contain only letters a–z and A–Z, commas between operands and one ->"),
    ("ij,j1->i", "contain only letters a–z and A–Z, commas between operands and one ->"),
    ("ij,jé->i", "contain only letters a–z and A–Z, commas between operands and one ->"),
    ("ij,jk->i,k", "contain only letters a–z and A–Z, commas between operands and one ->"),
    ("ij->ji", "name 2 operands"),
    ("ij,jk,kl->il", "name 2 operands"),
    ("ii,ij->j", "not repeat a letter within an operand"),
    ("ij,jk->ii", "not repeat a letter in the result"),
    ("ij,jk->il", "use only letters of the operands in the result"),
    ("->", "name 2 operands"),
    ("", "give the letters of the result after ->"),
]


@pytest.mark.parametrize(("equation", "wanted"), WRONG_EQUATIONS)
def test_invalid_equations_are_refused(equation: str, wanted: str) -> None:
    refused = error("einsum", real(2, 3), real(3, 4), equation=equation)
    assert refused.code == "bad_attribute"
    assert refused.detail == f"node 2 (einsum): attribute equation must {wanted}, but is “{equation}”"
    assert refused.expected == wanted


def test_operand_shapes_must_match_the_equation() -> None:
    ranks = error("einsum", real(2, 3), real(3), equation="ij,jk->ik")
    assert ranks.code == "shape_mismatch"
    assert ranks.detail == "node 2 (einsum): operand 1, “jk”, must have 2 axes, but has shape [3]"
    extents = error("einsum", real(2, 3), real(4, 2), equation="ij,jk->ik")
    assert extents.detail == (
        "node 2 (einsum): operand 1, “jk”, must have extent 3 for j, as in an earlier operand, but has shape [4, 2]"
    )
    assert (extents.operand, extents.got) == (1, "[4, 2]")
    assert error("einsum", real(2, 3), equation="ij").code == "bad_attribute"
    assert error("einsum", real(2), equation="i" * 200 + "->").detail.endswith("…”")


def test_all_52_letters_and_the_operand_limit() -> None:
    lower, upper = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    ones = np.ones((1,) * 26)
    assert run("einsum", ones, 2 * ones, equation=f"{lower},{upper}->") == 2
    two = np.full(1, 2.0)
    assert run("einsum", *[two] * 32, equation=",".join("i" * 32) + "->") == 2.0**32
    assert error("einsum", *[two] * 33, equation=",".join("i" * 33) + "->").code == "operand_count"
