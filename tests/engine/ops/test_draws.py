"""Random numbers: functions of a key, the same in a batch and alone, of the distributions that they are named after."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Batch, Compiler, Limits, Program, Statement, TensorType, registry
from engine.ir.run_context import RunContext
from engine.ops.randomness import draws
from tests.engine.ops.run import EXECUTOR, Array, error, run
from tests.sampling import together

KEY = np.array([0, 42], "uint32")
MANY = 20_000
#: what `jax.random` of JAX 0.10.2 draws, as bits: written by tests/reference/test_draws.py
DRAWN = json.loads((Path(__file__).parents[2] / "reference" / "jax_draws.json").read_text(encoding="utf-8"))
#: standard deviations that draws as they should be may be off by; they are always the same draws
FAR = 4.0
#: distribution functions
DISTRIBUTIONS: dict[str, Callable[[float], float]] = {
    "random_uniform": lambda x: x,
    "random_normal": lambda x: (1 + math.erf(x / math.sqrt(2))) / 2,
    "random_exponential": lambda x: -math.expm1(-x),
    "random_gumbel": lambda x: math.exp(-math.exp(-x)),
}


def is_fair(hits: int, count: int, p: float) -> bool:
    """Whether so many of `count` may be there by a probability of p."""
    return abs(hits - count * p) < FAR * math.sqrt(count * p * (1 - p))


def drawn(op: str, key: Array = KEY, **attrs: Any) -> Array:
    return run(op, key, **attrs)


@together
@pytest.mark.parametrize("case", DRAWN, ids=lambda case: f"{case['op']} {case['key']} {case['attrs']}")
def test_draws_are_those_of_jax_bit_for_bit(case: dict[str, Any]) -> None:
    """As far as they are integers, or made of them without a function that rounds; normal ones within 32 units."""
    found = run(case["op"], np.array(case["key"], "uint32"), *map(np.asarray, case["numbers"]), **case["attrs"])
    wanted = np.frombuffer(bytes.fromhex(case["bits"]), found.dtype).reshape(found.shape)
    if case["units"] == 0:
        assert found.tobytes() == wanted.tobytes()
    else:
        np.testing.assert_array_max_ulp(found, wanted, case["units"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", DISTRIBUTIONS)
def test_the_distribution_is_the_one_it_is_named_after(op: str, dtype: str) -> None:
    found = drawn(op, shape=[MANY], dtype=dtype)
    assert np.isfinite(found).all()
    wanted = np.array([DISTRIBUTIONS[op](x) for x in np.sort(found).tolist()])
    # Kolmogorov and Smirnov: beyond 2.3 / √n by a chance of 5e-5
    assert np.abs(wanted - (np.arange(MANY) + 0.5) / MANY).max() < 2.3 / math.sqrt(MANY)


def test_formulas_are_as_accurate_as_their_functions() -> None:
    """JAX's own log1p is dozens of units off, so that its numbers hold ours to no more than that."""
    uniform = [float(u) for u in drawn("random_uniform", shape=[500], dtype="float64")]
    wanted = np.array([-math.log1p(-u) for u in uniform])
    np.testing.assert_array_max_ulp(drawn("random_exponential", shape=[500], dtype="float64"), wanted, 2)
    wanted = np.array([-math.log(-math.log(u)) for u in uniform])
    np.testing.assert_allclose(drawn("random_gumbel", shape=[500], dtype="float64"), wanted, 1e-14, 1e-14)


def test_bits_are_even() -> None:
    bits = np.unpackbits(drawn("random_bits", shape=[MANY]).view("uint8"))
    assert is_fair(int(bits.sum()), bits.size, 0.5)


def test_a_permutation_has_each_number_once_and_no_order() -> None:
    found = drawn("random_permutation", k=MANY)
    assert np.array_equal(np.sort(found), np.arange(MANY))
    assert abs(np.corrcoef(found, np.arange(MANY))[0, 1]) < FAR / math.sqrt(MANY)


def test_permutations_are_the_same_however_many_are_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = np.arange(14, dtype="uint32").reshape(7, 2)
    alone = np.stack([drawn("random_permutation", key, k=5) for key in keys])
    for at_once in (1, 10, 15, 1000):
        monkeypatch.setattr(draws, "_SORTED_NUMBERS", at_once)
        out = np.empty((7, 5), "int64")
        draws.RandomPermutation().forward(RunContext(np), keys, out=out, k=5)
        assert np.array_equal(out, alone)


def test_bernoulli_is_true_as_often_as_it_says() -> None:
    found = run("random_bernoulli", KEY, np.full((MANY,), 0.3))
    assert is_fair(int(found.sum()), MANY, 0.3)
    certain = run("random_bernoulli", KEY, np.array([0.0, 1.0, np.nan] * 100).reshape(-1, 3))
    assert certain.all(axis=0).tolist() == [False, True, False]
    assert not certain[:, 0].any()


def test_categories_come_by_their_weights() -> None:
    p = np.array([0.5, 0.2, 0.3])
    found = run("random_categorical", KEY, np.broadcast_to(np.log(p), (MANY, 3)))
    assert all(is_fair(int(hits), MANY, weight) for hits, weight in zip(np.bincount(found), p, strict=True))
    never = np.array([[-np.inf, 0.0, -np.inf]] * 9)
    assert run("random_categorical", KEY, never).tolist() == [1] * 9
    assert run("random_categorical", KEY, never.T, axis=0).tolist() == [1] * 9


def test_keys_that_are_split_off_draw_other_numbers() -> None:
    keys = [KEY, *drawn("random_split", k=3), run("random_fold_in", KEY, np.array(9)), run("random_key", np.array(43))]
    rows = {drawn("random_bits", key, shape=[4]).tobytes() for key in keys}
    assert len(rows) == len(keys)


def test_a_number_is_folded_in_by_its_lower_word() -> None:
    low = run("random_fold_in", KEY, np.array(5))
    for number in (np.array(5 + 2**32), np.array(5 - 2**32), np.array(5, "int8"), np.array(5, "uint32")):
        assert np.array_equal(run("random_fold_in", KEY, number), low)


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("random_split", {"k": 3}),
        ("random_bits", {"shape": [2, 2]}),
        ("random_uniform", {"shape": [5], "dtype": "float32"}),
        ("random_normal", {"shape": [5], "dtype": "float64"}),
        ("random_gumbel", {"shape": [], "dtype": "float64"}),
        ("random_permutation", {"k": 7}),
    ],
)
def test_a_batch_of_keys_draws_what_each_draws_alone(op: str, attrs: dict[str, Any]) -> None:
    keys = np.arange(12, dtype="uint32").reshape(6, 2)
    ops = registry().ops
    program = Program(registry(), [Statement(ops["input"]), Statement(ops[op], (0,), attrs)], opset=2)
    types = {0: TensorType.of(keys)}
    compiled = Compiler(Limits()).compile(program, types, Batch.of_program(program, types, [0]))
    (found,) = EXECUTOR.run(compiled.plan, {0: keys})
    assert found.tobytes() == np.stack([drawn(op, key, **attrs) for key in keys]).tobytes()


def test_what_is_no_key_is_refused() -> None:
    wanted = "operand 0 (key) must have shape [2], a key is two words, but has shape [3]"
    assert wanted in str(error("random_uniform", np.zeros(3, "uint32"), shape=[1], dtype="float32"))
    assert wanted in str(error("random_normal", np.zeros(3, "uint32"), shape=[1], dtype="float32"))
    assert "must be of dtype uint32, but is int64" in str(error("random_bits", np.zeros(2, "int64"), shape=[1]))
    assert "operand 0 (key) must be of dtype uint32" in str(error("random_fold_in", np.zeros(2, "int64"), 1))
    assert "operand 1 (p) must be of dtype float32, float64, but is float16" in str(
        error("random_bernoulli", KEY, np.zeros(2, "float16"))
    )
    assert "operand 0 (seed) must be of dtype int64" in str(error("random_key", np.array(1, "int32")))


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "operand"),
    [
        ("random_key", [np.zeros(1, "int64")], {}, 0),
        ("random_permutation", [np.zeros(1, "uint32")], {"k": 2}, 0),
        ("random_fold_in", [np.zeros(1, "uint32"), np.array(1)], {}, 0),
        ("random_fold_in", [KEY, np.zeros(2, "int64")], {}, 1),
        ("random_bernoulli", [np.zeros((1, 2), "uint32"), np.zeros(2)], {}, 0),
        ("random_categorical", [np.zeros(1, "uint32"), np.zeros(2)], {}, 0),
    ],
)
def test_the_operand_of_a_wrong_shape_is_named(
    op: str, operands: list[Array], attrs: dict[str, Any], operand: int
) -> None:
    found = error(op, *operands, **attrs)
    assert (found.code, found.operand) == ("shape_mismatch", operand)


def test_categories_lie_along_the_last_axis_unless_told_otherwise() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 3, 4))
    last = run("random_categorical", KEY, logits)
    assert last.shape == (2, 3)
    assert np.array_equal(last, run("random_categorical", KEY, logits, axis=2))
    noise = drawn("random_gumbel", shape=[2, 3, 4], dtype="float64")
    for axis in (0, 1, 2):
        found = run("random_categorical", KEY, logits, axis=axis)
        assert np.array_equal(found, (logits + noise).argmax(axis))


def test_numbers_are_folded_in_one_for_each_example() -> None:
    ops, numbers = registry().ops, np.arange(5)
    program = Program(
        registry(),
        [Statement(ops["input"]), Statement(ops["input"]), Statement(ops["random_fold_in"], (0, 1))],
        opset=2,
    )
    types = {0: TensorType.of(KEY), 1: TensorType.of(numbers)}
    compiled = Compiler(Limits()).compile(program, types, Batch.of_program(program, types, [1]))
    (found,) = EXECUTOR.run(compiled.plan, {0: KEY, 1: numbers})
    assert np.array_equal(found, np.stack([run("random_fold_in", KEY, number) for number in numbers]))


def test_draws_of_another_dtype_and_of_no_shape_are_refused() -> None:
    assert "attribute dtype must be one of float32, float64, but is “int64”" in str(
        error("random_uniform", KEY, shape=[1], dtype="int64")
    )
    assert "attribute shape is required" in str(error("random_uniform", KEY, dtype="float32"))
    assert "attribute shape must be whole numbers of at least 0" in str(
        error("random_uniform", KEY, shape=[-1], dtype="float32")
    )
    assert "attribute k must be a whole number of at least 0" in str(error("random_split", KEY, k=-1))
    assert error("random_categorical", KEY, np.zeros((2, 0))).code == "shape_mismatch"
    assert error("random_uniform", KEY, shape=[2**40], dtype="float32").code == "over_budget"


def test_bernoulli_is_less_than_and_not_as_much_as_its_probability() -> None:
    for dtype in ("float32", "float64"):
        p = drawn("random_uniform", shape=[50], dtype=dtype)
        assert not run("random_bernoulli", KEY, p).any()
        assert run("random_bernoulli", KEY, np.nextafter(p, np.ones((), dtype))).all()


def test_only_an_op_that_batches_have_put_axes_before_is_the_engines_own() -> None:
    for op in (draws.RandomKey, draws.RandomBits, draws.RandomPermutation):
        assert (op().batches, op().internal) == (0, False)
        assert (op(2).batches, op(2).internal) == (2, True)
