"""Refused imports of JAX functions, with all reasons at once, and checks of the arguments."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

pytest.importorskip("jax", reason="JAX is not installed")

import jax
import jax.numpy as jnp
from jax import lax

from gradserve_client.importing import ImportLimits, ImportRefused
from gradserve_client.jax import import_function

X = np.array([[1.0, 2.0], [0.5, 3.0]])


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def refused(function: Any, *arguments: Any, **options: Any) -> ImportRefused:
    with pytest.raises(ImportRefused) as caught:
        import_function(function, *arguments, **options)
    return caught.value


def line_of(function: Any) -> str:
    return f"test_jax_refusals.py:{function.__code__.co_firstlineno + 1} ({function.__name__})"


def factors(x: Any) -> Any:
    return jax.scipy.linalg.schur(x)[0]


def all_vectors(x: Any) -> Any:
    return jnp.linalg.svd(x[:1])[2]


def rows_exchanged(x: Any) -> Any:
    return x[lax.linalg.lu(x)[1]]


def complex_numbers(x: Any) -> Any:
    return jnp.abs(jnp.sort(jnp.fft.fft(x[0])))


def complex_power(x: Any) -> Any:
    return jnp.abs(x.astype(complex) ** (x + 1j))


def gamma_draws(x: Any) -> Any:
    return x * jax.random.gamma(jax.random.key(0), 2.0)


def large_draws(x: Any) -> Any:
    return x + jax.random.randint(jax.random.key(0), (2,), 0, 9, "int64")


def other_generator(x: Any) -> Any:
    return x + jax.random.normal(jax.random.key(0, impl="rbg"))


def endless(x: Any) -> Any:
    return lax.while_loop(lambda y: y.sum() < 100, lambda y: y * 2, x)


def calls_back(x: Any) -> Any:
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def lower_triangle(x: Any) -> Any:
    return lax.linalg.cholesky(x, symmetrize_input=False)


def narrow(x: Any) -> Any:
    return (x.astype("bfloat16") * 2).astype("float64")


def wide_bits(x: Any) -> Any:
    return x.astype("int64") ^ 5


def conjugate_gradients(x: Any) -> Any:
    return jax.scipy.sparse.linalg.cg(lambda v: x @ x.T @ v, x[0])[0]


SENTENCES = {
    factors: "no op computes these factors; use cholesky, eigh, lu, qr or svd, if one of them suffices",
    all_vectors: "it requests more singular vectors than singular values; use full_matrices=False",
    rows_exchanged: (
        "it reads the row exchanges of LU as a sequence; read the permutation, which lax.linalg.lu also returns"
    ),
    complex_numbers: "no op computes it for complex numbers; compute with separate real and imaginary parts",
    complex_power: "no op computes complex powers; write jnp.exp(y * jnp.log(x)), or use a real number as y",
    gamma_draws: "no op computes it",
    large_draws: (
        "it reads 64 random bits as an integer, an unsupported dtype; draw floats, or 32-bit integers: dtype='int32'"
    ),
    other_generator: "its keys are not threefry keys; use jax.random.key, which makes threefry keys",
    endless: (
        "the number of its steps depends on the data; pass a bound as `max_steps`, or use lax.fori_loop or lax.scan"
    ),
    calls_back: "it calls back into Python; return the values that the callback needs",
    lower_triangle: "it reads only the lower triangle of a matrix; leave symmetrize_input at its default, True",
    narrow: "it returns bfloat16, an unsupported dtype",
    wide_bits: "its dtype is int64, but only up to 32 bits are supported; cast it to int32",
}


@pytest.mark.parametrize("function", SENTENCES, ids=lambda function: function.__name__)
def test_refusal_has_a_reason_and_a_place(function: Any) -> None:
    error = refused(function, X)
    assert f"cannot import the function '{function.__name__}' because of" in str(error)
    sentences = [line for line in str(error).splitlines()[1:] if SENTENCES[function] in line]
    assert sentences, str(error)
    assert line_of(function) in sentences[0]


def test_all_obstacles_are_reported_at_once() -> None:
    def several(x: Any) -> Any:
        factors = jax.scipy.linalg.schur(x)[0] + jax.scipy.linalg.schur(x.T)[0]
        turned = lax.while_loop(lambda y: y.sum() < 9, lambda y: y + jnp.linalg.svd(y[:1])[2], x)
        return factors + turned[0], jnp.sort(jnp.fft.rfft(x))

    error = refused(several, X, max_steps=4)
    assert {(each.op, len(each.places)) for each in error.obstacles} >= {("schur", 2), ("svd", 1), ("sort", 1)}
    assert error.tally is not None
    assert error.tally.occurrences["schur"] == 2


def test_unused_results_are_not_refused() -> None:
    model = import_function(lambda x: (jax.scipy.linalg.schur(x), x * 2)[1], X)
    assert [node.op for node in model.graph] == ["parameter", "mul_scalar"]


def test_factors_of_constants_are_folded() -> None:
    model = import_function(lambda x: x * jax.scipy.linalg.schur(jnp.asarray(X))[0], X)
    assert {node.op for node in model.graph} == {"parameter", "constant", "mul"}


def test_inlined_jit_is_counted_without_a_note() -> None:
    model = import_function(jax.jit(lambda x: jnp.sin(x) + 1), X)
    assert model.notes == ()
    assert model.tally.occurrences["jit"] == 1


def test_custom_linear_solvers_are_refused() -> None:
    error = refused(conjugate_gradients, X, max_steps=10)
    assert [obstacle.op for obstacle in error.obstacles] == ["custom_linear_solve"]


@jax.custom_jvp
def clipped(x: Any) -> Any:
    return jnp.clip(x, -1, 1)


@clipped.defjvp
def _squared_tangent(primals: Any, tangents: Any) -> Any:
    return clipped(*primals), tangents[0] ** 2


def test_nonlinear_rule_is_refused_unless_the_body_is_used() -> None:
    error = refused(clipped, X)
    (obstacle,) = error.obstacles
    assert obstacle.op == "custom_jvp_call"
    assert obstacle.reason.startswith("its rule cannot be expressed as a function of cotangents")
    assert obstacle.way_round == "use custom_rules='body' to differentiate its body instead of its rule"
    model = import_function(clipped, X, custom_rules="body")
    assert "custom_jvp_call clipped: its body is differentiated, not its rule: custom_rules='body'" in [
        str(note) for note in model.notes
    ]
    assert "call" not in {node.op for node in model.graph}


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((X,), {"parameters": 1}, "parameters name argument 1, but the number of arguments is 1"),
        ((X,), {"parameters": (0, -1)}, "parameters name an argument twice: [0, -1]"),
        (("text",), {}, "'x' is str, not an array: bind it with functools.partial"),
        ((X,), {"custom_rules": "none"}, "custom_rules must be 'keep' or 'body', not 'none'"),
        (({"a.b": X, "a": {"b": X}},), {}, "two leaves would be named 'x.a.b': give the entries of 'x' other keys"),
        ((X,), {"free": {"x": [0]}, "second": ()}, "the second example must have 1 arguments, not 0"),
        ((X,), {"free": {"y": [0]}, "second": (X,)}, "'y' is not an input of the model and cannot have free extents"),
    ],
)
def test_invalid_arguments_are_refused(arguments: Any, options: Any, sentence: str) -> None:
    with pytest.raises(gs.InputError) as caught:
        import_function(lambda x: jax.tree.map(jnp.sin, x), *arguments, **options)
    assert str(caught.value) == sentence


def test_dtypes_that_jax_would_change_are_refused() -> None:
    with jax.enable_x64(False), pytest.raises(gs.InputError) as caught:
        import_function(jnp.sin, X)
    assert str(caught.value) == "'x' is float64, which JAX converts to float32: set jax_enable_x64, or pass float32"


def test_scalar_that_depends_on_a_free_extent_is_refused() -> None:
    error = refused(lambda w, x: x @ w / x.shape[0], X, X, free={"x": [0]}, second=(X, np.ones((3, 2))))
    assert "div_scalar" in str(error)
    assert "its scalar is 2.0, but 3.0 with the second example" in str(error)


def test_older_threefry_is_refused() -> None:
    with jax.threefry_partitionable(False):
        error = refused(lambda x, key: x * jax.random.normal(key), X, jax.random.PRNGKey(0))
    assert "it draws with the older, non-partitionable threefry" in str(error)


def test_while_inside_jit_is_located_at_its_source() -> None:
    error = refused(jax.jit(partial(endless)), X)
    assert line_of(endless) in str(error)


@pytest.mark.parametrize("limit", ["nodes", "steps"])
def test_unrolled_scan_stops_at_the_limits(limit: str) -> None:
    def endless_scan(x: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.sin(c), None), x, length=10**12)[0]

    limits = ImportLimits(**{limit: 100})
    error = refused(endless_scan, X, unroll=True, limits=limits)
    assert f"the import would exceed its limit of 100 {limit}" in str(error)
    assert import_function(endless_scan, X, limits=limits).outputs


def test_closed_over_constants_count_as_bytes() -> None:
    large = np.ones((100, 2))
    error = refused(lambda x: x + large[:2] + large.sum(), X, limits=ImportLimits(bytes=8))
    assert "its limit of 8 bytes" in str(error)
