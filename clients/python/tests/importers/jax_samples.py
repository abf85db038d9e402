"""For each primitive that has a rule, functions of JAX that run it, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from clients.python.tests.importers.jax_programs import normal, positive

Sample = tuple[Callable[..., Any], tuple[Any, ...]]
X, Y = normal(1, 3, 4), normal(2, 3, 4)
P = np.abs(X) + 0.5
INTEGERS = np.array([[-7, 5, 0], [3, -2, 100]], np.int64)
OTHERS = np.array([[2, -3, 5], [3, 1, 7]], np.int64)
NARROW, SHIFTS = INTEGERS.astype(np.int32), np.array([[0, 3, 31], [1, 5, 40]], np.int32)
UNSIGNED = np.array([0, 5, 2**31, 2**32 - 1], np.uint32)
BOOLS = np.array([True, False, True])
KEY = jax.random.PRNGKey(7)
KEYS = np.arange(12, dtype=np.uint32).reshape(3, 2, 2)
SQUARE = positive(3, 3)
FOUR = normal(6, 4, 3, 5)
IMAGE = normal(4, 2, 5, 6, 3)
INDEX = np.array([[2], [0], [2]])
#: off the cuts of the functions of complex numbers
Z, W = X + 1j * normal(7, 3, 4), normal(8, 3, 4) + 1j * Y
HERMITIAN = SQUARE + np.triu(normal(9, 3, 3) * 1j, 1)
SHORT = INTEGERS.astype(np.int16)


def of(function: Callable[..., Any], *arguments: Any) -> Sample:
    return function, arguments


def unary(function: Callable[[Any], Any], x: Any = X) -> list[Sample]:
    return [of(function, x)]


def numbers(offsets: tuple[int, ...], collapsed: tuple[int, ...], told: tuple[int, ...]) -> lax.GatherDimensionNumbers:
    return lax.GatherDimensionNumbers(offsets, collapsed, told)


def scattered(function: Any, **options: Any) -> list[Sample]:
    """Rows, elements and windows; and what lies beyond, dropped, clipped."""
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    windows = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    apart, beyond = np.array([[2], [0]]), np.array([[2], [7], [-1]])
    places = np.array([[1, 2], [0, 0]])
    return [
        of(lambda x, u: function(x, apart, u, rows, unique_indices=True, **options), X, Y[:2]),
        of(lambda x, u, i: function(x, i, u, rows, unique_indices=True, **options), X, Y[:2], apart),
        of(lambda x, u: function(x, beyond, u, rows, unique_indices=True, **options), X, Y),
        of(lambda x, u, i: function(x, i, u, rows, unique_indices=True, **options), X, Y, beyond),
        of(lambda x, u: function(x, beyond[:1] + 4, u, rows, mode="clip", unique_indices=True), X, Y[:1]),
        of(lambda x, u: function(x, places[:1], u[None, :2, :2], windows, unique_indices=True), X, Y),
    ]


def threefold(function: Any) -> list[Sample]:
    """Along either axis, from either end, and with equal entries."""
    return [of(lambda x: function(x, 0), X), of(lambda x: function(x, 1, reverse=True), np.round(X))]


def convolved(**options: Any) -> Sample:
    stated = {"window_strides": (1, 1), "padding": "VALID", "dimension_numbers": ("NHWC", "HWIO", "NHWC"), **options}
    groups = stated.get("feature_group_count", 1)
    features = 4 if "batch_group_count" in options else 3
    return of(lambda x, k: lax.conv_general_dilated(x, k, **stated), IMAGE, normal(5, 3, 2, 3 // groups, features))


def windowed(function: Any, first: float, **options: Any) -> Sample:
    stated = {"window_dimensions": (1, 2, 3, 1), "window_strides": (1, 2, 1, 1), "padding": "VALID", **options}
    return of(lambda x: lax.reduce_window(x, first, function, **stated), IMAGE)


def slope_of_pool(padding: str, least: bool = False) -> Any:
    """The gradient of extremes of windows."""
    function, first = (lax.min, np.inf) if least else (lax.max, -np.inf)
    windows = (1, 3, 2, 1), (1, 2, 1, 1), padding
    return jax.grad(lambda x: (lax.reduce_window(x, first, function, *windows) ** 3).sum())


@jax.custom_vjp
def halved_back(x: Any) -> Any:
    """Twice x, with a rule that says otherwise."""
    return 2 * x


halved_back.defvjp(lambda x: (halved_back(x), None), lambda _, g: (0.5 * g,))


@jax.custom_vjp
def turned_back(x: Any) -> Any:
    """Twice x, with a rule that turns cotangents, which are the conjugates of ours."""
    return 2 * x


turned_back.defvjp(lambda x: (turned_back(x), None), lambda _, g: ((0.5 + 1j) * g,))
wide = lambda key, shape: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key), shape))

magnitude = jax.custom_batching.custom_vmap(jnp.abs)
magnitude.def_vmap(lambda size, batched, x: (jnp.abs(x), batched[0]))


def projected(x: Any) -> Any:
    """What does not depend on phases of eigenvectors."""
    w, v = jnp.linalg.eigh(x)
    return w, (v * jnp.tanh(w)[..., None, :]) @ v.conj().mT


def without_phases(x: Any) -> Any:
    """What does not depend on those of singular vectors."""
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return s, (u * jnp.tanh(s)[..., None, :]) @ vh


SAMPLES: dict[str, list[Sample]] = {
    **{
        name: unary(getattr(lax, name))
        for name in ("abs", "asinh", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor")
    },
    **{name: unary(getattr(lax, name)) for name in ("is_finite", "logistic", "neg", "sign", "sin", "sinh", "square")},
    **{name: unary(getattr(lax, name)) for name in ("tan", "tanh", "cbrt", "stop_gradient")},
    **{name: unary(getattr(lax, name), P) for name in ("digamma", "lgamma", "log", "log1p", "rsqrt", "sqrt")},
    **{name: unary(getattr(lax, name), X / 3) for name in ("acos", "asin", "atanh", "erf_inv")},
    **{name: [of(getattr(lax, name), X, np.where(Y > 0, X, Y))] for name in ("eq", "ge", "gt", "le", "lt", "ne")},
    "acosh": unary(lax.acosh, P + 1),
    **{name: unary(getattr(lax, name), Z) for name in ("real", "imag")},
    "conj": [*unary(jnp.conj, Z), *unary(lax.conj)],
    "complex": [of(lax.complex, X, Y), of(lambda z: lax.complex(jnp.abs(z), jnp.angle(z)), Z)],
    "fft": [
        *unary(jnp.fft.fft),
        *unary(jnp.fft.fft, Z),
        *unary(lambda z: jnp.fft.ifft(z, norm="ortho"), Z),
        *unary(jnp.fft.ifftn, Z),
        *unary(jnp.fft.rfft2),
        *unary(lambda x: jnp.fft.rfft(x, 5, axis=0)),
        *unary(jnp.fft.irfft, Z),
        *unary(lambda z: jnp.fft.irfft(z, 5, axis=0), Z),
        *unary(lambda z: jnp.fft.irfft2(z, (2, 7), norm="forward"), Z),
        *unary(jnp.fft.fft, X.astype(np.float32)),
    ],
    "eigh": [
        of(jnp.linalg.eigh, SQUARE),
        of(projected, np.stack([HERMITIAN, HERMITIAN.T])),
        of(jnp.linalg.eigvalsh, SQUARE),
    ],
    "svd": [
        of(without_phases, X),
        of(without_phases, Z.T),
        of(lambda x: jnp.linalg.svd(x, compute_uv=False), Z),
        of(jnp.linalg.pinv, X),
        of(lambda a, b: jnp.linalg.lstsq(a, b)[0], X.T, X[:2].T),
    ],
    "qr": [of(jnp.linalg.qr, X.T), of(jnp.linalg.qr, Z.T), of(lambda x: jnp.linalg.qr(x, mode="complete"), SQUARE)],
    "add": [of(lax.add, X, Y), of(lambda x: x + 2.5, X), of(lambda x: 2.5 + x, X), of(lax.add, INTEGERS, OTHERS)],
    "add_any": [of(lambda x: jax.vjp(lambda y: (y, jnp.sin(y)), x)[1]((x, x)), X)],
    "sub": [of(lax.sub, X, Y), of(lambda x: x - 2.5, X), of(lambda x: 2.5 - x, X)],
    "mul": [of(lax.mul, X, Y), of(lambda x: x * 2.5, X), of(lax.mul, INTEGERS, OTHERS)],
    "div": [
        of(lax.div, X, P),
        of(lambda x: x / 2.5, X),
        of(lambda x: 1 / x, P),
        of(lambda x: x.mean(1) + x.sum(1) / 3, X),
        of(lambda x: x.mean(1, keepdims=True), X),
        of(lax.div, INTEGERS, OTHERS),
        of(lax.div, UNSIGNED, np.array([1, 2, 3, 7], np.uint32)),
        of(lax.div, np.array([2**62 + 1, -(2**62) - 3]), np.array([3, 7])),
        *(of(lax.div, each, each[::-1] * 0) for each in (SHORT, UNSIGNED)),
        of(lambda x: lax.div(x, np.int64(-3)), INTEGERS),
        of(lax.div, Z, W),
        of(lambda x: 1 / x + x / 2.5, Z),
    ],
    "rem": [
        *(of(lax.rem, X, P), of(lax.rem, INTEGERS, OTHERS), of(lax.rem, UNSIGNED, UNSIGNED[::-1] + 1)),
        of(lambda x: lax.rem(x, np.int64(-3)), INTEGERS),
        of(lax.rem, SHORT, SHORT * 0),
    ],
    "max": [of(lax.max, X, np.where(Y > 0, X, Y)), of(lax.max, BOOLS, BOOLS[::-1]), of(lax.max, INTEGERS, OTHERS)],
    "min": [of(lax.min, X, np.where(Y > 0, X, Y)), of(lax.min, BOOLS, BOOLS[::-1])],
    "atan2": [of(lax.atan2, X, Y)],
    "integer_pow": [of(lambda x, n=n: lax.integer_pow(x, n), X) for n in (-2, -1, 2, 3, 5)]
    + [of(lambda x: lax.integer_pow(x, 3), INTEGERS)],
    "pow": [of(lax.pow, P, Y), of(lambda x: x**2.5, P), of(lambda x: lax.pow(x, 3), X)],
    "round": [
        of(lambda x, m=m: lax.round(x, m), np.array([-1.5, -0.5, 0.49999999999999994, 0.5, 2.5, 2.6]))
        for m in lax.RoundingMethod
    ],
    "clamp": [
        of(lax.clamp, np.full_like(X, -0.2), np.where(Y > 0, -0.2, X), np.full_like(X, 0.3)),
        of(lambda x: lax.clamp(-0.2, x, 0.3), X),
        of(lambda x: lax.clamp(-2, x, 4), INTEGERS),
    ],
    "select_n": [
        of(lax.select, X > 0, X, Y),
        of(lambda i, x: lax.select_n(i, x, x * 2, x**2), np.array([0, 2, 1], np.int32), X[0, :3]),
        of(lambda x: lax.select(np.ones((3, 4), bool), x, x * 2), X),
        of(lambda c: lax.select(c, BOOLS, ~BOOLS), BOOLS),
    ],
    **{
        name: [of(function, np.array([0.0, -0.0, 1.0, np.nan]), np.array([-0.0, 0.0, np.nan, np.nan]))]
        for name, function in {
            "lt_to": lax.lt_to_p.bind,
            "le_to": lax.le_to_p.bind,
            "eq_to": lax.eq_to_p.bind,
        }.items()
    },
    **{name: [of(getattr(lax, name), P, P[::-1] + 0.5)] for name in ("igamma", "igammac")},
    # which JAX does not differentiate
    "zeta": [of(lambda x: lax.zeta(jnp.full_like(x, 2.5), lax.stop_gradient(x)), P)],
    # by its shapes, JAX has no gradient
    "regularized_incomplete_beta": [of(lambda x: lax.betainc(jnp.full_like(x, 1.5), jnp.full_like(x, 0.7), x), P / 4)],
    **{name: unary(getattr(lax, name), 4 * X) for name in ("bessel_i0e", "bessel_i1e")},
    "polygamma": [of(lambda x: lax.polygamma(jnp.full_like(x, 2.0), x), P)],
    **{
        name: [of(function, BOOLS, ~BOOLS[::-1]), of(function, NARROW, SHIFTS), of(function, UNSIGNED, UNSIGNED[::-1])]
        for name, function in {
            "and": lax.bitwise_and,
            "or": lax.bitwise_or,
            "xor": lax.bitwise_xor,
        }.items()
    },
    "not": [of(lax.bitwise_not, BOOLS), of(lax.bitwise_not, NARROW), of(lax.bitwise_not, UNSIGNED)],
    "shift_left": [of(lax.shift_left, NARROW, SHIFTS)],
    "shift_right_arithmetic": [of(lax.shift_right_arithmetic, NARROW, SHIFTS)],
    "shift_right_logical": [of(lax.shift_right_logical, NARROW, SHIFTS)],
    "population_count": [of(lax.population_count, NARROW), of(lax.population_count, UNSIGNED)],
    "convert_element_type": [
        of(lambda x: x.astype("float32"), X),
        of(lambda x: (x * 9).astype("int32"), X),
        of(lambda x: x.astype(bool), INTEGERS),
    ],
    "bitcast_convert_type": [of(lambda key: jax.random.uniform(key, (3,)), KEY)],
    "reduce_precision": [
        of(lambda x: lax.reduce_precision(x, 8, 23), X),
        of(lambda x: lax.reduce_precision(x, 11, 52), X),
    ],
    "copy": unary(jnp.copy),
    "device_put": unary(jax.device_put),
    "name": unary(lambda x: checkpoint_name(x, "kept")),
    "optimization_barrier": [of(lambda x, y: lax.optimization_barrier((x, y)), X, Y)],
    "reduce_sum": [of(lambda x: x.sum(1), X), of(lambda x: x.sum(), INTEGERS), of(lambda x: x.sum(0), BOOLS)],
    "reduce_prod": [of(lambda x: x.prod(1), X), of(lambda x: x.prod(0), NARROW)],
    "reduce_max": [of(lambda x: x.max(1), np.round(X)), of(lambda x: x.max(), BOOLS)],
    "reduce_min": [of(lambda x: x.min(1), np.round(X))],
    "reduce_or": [of(lambda x: x.any(0), BOOLS), of(lambda x: (x > 0).any(1), X)],
    "reduce_and": [of(lambda x: x.all(0), BOOLS)],
    "reduce_xor": [of(lambda x: lax.reduce_xor_p.bind(x, axes=(0,)), BOOLS)],
    "argmax": [of(lambda x: jnp.argmax(x, 1), np.round(X)), of(lambda x: lax.argmax(x, 0, "int32"), BOOLS)],
    "argmin": [of(lambda x: jnp.argmin(x, 0), np.round(X))],
    "cumsum": [*threefold(lax.cumsum), of(lambda x: lax.cumsum(x, 1), NARROW), of(lambda x: lax.cumsum(x, 0), Z)],
    "cumprod": [
        *threefold(lax.cumprod),
        of(lambda x: lax.cumprod(x, 1, reverse=True), NARROW),
        of(lambda x: lax.cumprod(x, 0), Z),
    ],
    "cummax": [*threefold(lax.cummax), of(lambda x: lax.cummax(x, 1, reverse=True), SHORT)],
    "cummin": [*threefold(lax.cummin), of(lambda x: lax.cummin(x, 1), SHORT)],
    "cumlogsumexp": threefold(lax.cumlogsumexp),
    "sort": [
        of(lambda x: lax.sort(x, dimension=0), X),
        of(lambda x, y: lax.sort((jnp.round(x), y), num_keys=1), X, Y),
        of(lambda x, y: lax.sort((jnp.round(x), jnp.round(y), x), num_keys=2), X, Y),
        of(lax.sort, BOOLS),
    ],
    "top_k": [of(lambda x: lax.top_k(x, 2), np.round(X))],
    "reshape": [of(lambda x: x.reshape(2, 6), X), of(lambda x: lax.reshape(x, (6, 2), (1, 0)), X)],
    "squeeze": [of(lambda x: x[None].squeeze(0), X)],
    "broadcast_in_dim": [
        of(lambda x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)), X),
        of(lambda x: jnp.broadcast_to(x.sum(), (2, 3)), X),
    ],
    "transpose": [of(lambda x: x.transpose(2, 0, 3, 1), IMAGE)],
    "rev": [of(lambda x: lax.rev(x, (0, 1)), X)],
    "slice": [of(lambda x: x[1:, ::2], X), of(lambda x: x[:2, 1:3], X)],
    "concatenate": [of(lambda x, y: jnp.concatenate([x, y, x], 1), X, Y)],
    "stack": [of(lambda x, y: lax.stack_p.bind(x, y, axis=1), X, Y)],
    "unstack": [of(lambda x: tuple(lax.unstack_p.bind(x, axis=1)), X)],
    "split": [of(lambda x: jnp.split(x, [1, 3], axis=1), X)],
    "tile": [of(lambda x: lax.tile(x, (2, 3)), X)],
    "pad": [
        of(lambda x: lax.pad(x, 0.0, ((1, 2, 0), (0, 1, 0))), X),
        of(lambda x, v: lax.pad(x, v, ((1, -1, 0), (-2, 1, 0))), X, np.array(1.5)),
        of(lambda x, v: lax.pad(x, v, ((0, 1, 2), (-1, 0, 1))), X, np.array(1.5)),
        of(lambda x: lax.pad(x, True, ((1, 0, 1),)), BOOLS),
        of(lambda x: jnp.exp(lax.pad(x, -np.inf, ((1, 0, 0), (0, 2, 1)))), X),
        of(lambda a: lax.pad(a, np.int64(-7), ((1, 0, 0), (0, 2, 0))), INTEGERS),
    ],
    "iota": [of(lambda x: x + lax.broadcasted_iota("float64", (40, 50), 1), normal(1, 40, 50))],
    "dot_general": [
        of(lambda a, b: a @ b, X, Y.T),
        of(lambda a, b: lax.dot_general(a, b, (((1,), (2,)), ((0,), (1,)))), normal(1, 2, 3, 4), normal(2, 5, 2, 3)),
        of(lambda a, b: jnp.einsum("bij,bjk->bik", a, b), normal(1, 2, 3, 4), normal(2, 2, 4, 5)),
        of(lambda a, b: a @ b, INTEGERS, OTHERS.T),
        of(lambda a, b: lax.dot(a, b, preferred_element_type="float64"), np.float32(X), np.float32(Y.T)),
    ],
    "conv_general_dilated": [
        convolved(),
        convolved(window_strides=(2, 1), padding=((1, 2), (0, 1)), rhs_dilation=(2, 2)),
        convolved(padding=((-1, 2), (0, -2)), lhs_dilation=(2, 3)),
        convolved(feature_group_count=3),
        convolved(batch_group_count=2),
        of(lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID", batch_group_count=2), FOUR, normal(2, 4, 3, 2)),
        of(lambda x, k: lax.conv(x, k, (2,), "SAME"), normal(1, 2, 3, 8), normal(2, 4, 3, 3)),
        of(lambda x, k: lax.conv(x, k, (1, 2, 1), "SAME"), normal(1, 1, 2, 3, 4, 3), normal(2, 2, 2, 2, 2, 2)),
    ],
    "reduce_window_sum": [
        windowed(lax.add, 0.0),
        windowed(lax.add, 0.0, padding="SAME", window_dilation=(1, 2, 1, 1), base_dilation=(1, 1, 2, 1)),
        of(lambda x: lax.reduce_window(x, np.int64(0), lax.add, (1, 2), (1, 1), "SAME"), INTEGERS),
    ],
    "reduce_window_max": [
        windowed(lax.max, -np.inf, padding="SAME"),
        of(lambda x: lax.reduce_window(x, -np.inf, lax.max, (3,), (2,), "SAME"), X[0]),
        of(lambda x: lax.reduce_window(jnp.round(x), -np.inf, lax.max, (2, 2), (1, 1), "SAME"), X),
        of(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2, 2, 1), (1, 2, 1, 1), "SAME"), IMAGE),
        # JAX has no gradient of windows with gaps
        of(
            lambda x: lax.reduce_window(
                lax.stop_gradient(x), -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 1, 1), "SAME", None, (1, 1, 2, 1)
            ),
            IMAGE,
        ),
    ],
    "reduce_window_min": [windowed(lax.min, np.inf, padding="SAME")],
    "select_and_scatter_add": [
        of(slope_of_pool(**options), IMAGE) for options in ({"padding": "SAME"}, {"padding": "VALID", "least": True})
    ],
    "gather": [
        of(lambda x, i: x[i[:, 0]], X, INDEX),
        of(lambda x: x[:, INDEX[:, 0]], X),
        of(lambda x, i: lax.gather(x, i, numbers((1, 2), (), (0, 1)), (2, 3)), X, np.array([[1, 1], [0, 0]])),
        of(lambda x, i: lax.gather(x, i, numbers((1,), (0,), (0,)), (1, 4), mode="clip"), X, INDEX + 2),
        of(lambda x, i: lax.gather(x, i, numbers((1,), (0,), (0,)), (1, 4), mode="fill", fill_value=3.0), X, INDEX + 2),
        of(lambda x: lax.gather(x, INDEX - 1, numbers((1,), (0,), (0,)), (1, 3), mode="fill"), INTEGERS),
        of(lambda x, i: x[i, :, i + 1], FOUR, INDEX),
        of(lambda x, i: x[:, i, -i], FOUR, INDEX[:, 0]),
        of(lambda x, i: x[:, INDEX, i], FOUR, INDEX[:, 0]),
        of(lambda x, i: x[i, i, i], FOUR, np.array(-2)),
        of(lambda x, i: jnp.asarray(x).at[:, i, i].get(mode="fill", fill_value=3.0), FOUR, INDEX + 1),
        of(lambda x, i: jnp.asarray(x).at[i, :, i + 2].get(mode="clip"), FOUR, INDEX[:, 0] + 1),
        of(lambda keys, i: jax.random.uniform(jax.random.wrap_key_data(keys)[i, 0][1], (2,)), KEYS, INDEX[:, 0]),
        of(jax.vmap(lambda row, at: row[at]), X, INDEX),
        of(lambda x, i: jnp.take_along_axis(x, i, axis=1), X, np.array([[3, 0], [1, 1], [2, 3]])),
    ],
    "scatter": [
        *scattered(lax.scatter),
        of(lambda x, u: jnp.asarray(x).at[np.array([2, 0, 2])].set(u), X, Y),
        of(lambda x, u, i: jnp.asarray(x).at[i].set(u), X, Y, np.array([2, 0, 2])),
        of(lambda b, i: jnp.asarray(b).at[i].set(True), BOOLS, np.array([1])),
    ],
    "scatter-add": [*scattered(lax.scatter_add), of(lambda x, u, i: jnp.asarray(x).at[i[:, 0]].add(u), X, Y, INDEX)],
    "scatter-sub": [of(lambda x, u, i: jnp.asarray(x).at[i[:, 0]].subtract(u), X, Y, INDEX)],
    "scatter-mul": scattered(lax.scatter_mul),
    "scatter-max": [of(lambda x, i: jnp.asarray(x).at[i].max(np.arange(3)), INTEGERS[0], np.array([2, 0, 2]))],
    "scatter-min": [of(lambda x, i: jnp.asarray(x).at[i].min(np.arange(3)), INTEGERS[0], np.array([2, 0, 2]))],
    "dynamic_slice": [
        of(lambda x, i: lax.dynamic_slice(x, (i, i - 1), (2, 3)), X, np.array(2)),
        of(lambda x: lax.dynamic_slice(x, (7, 1), (2, 3)), X),
    ],
    "dynamic_update_slice": [
        of(lambda x, u, i: lax.dynamic_update_slice(x, u[:2, :3], (i, 0)), X, Y, np.array(2)),
        of(lambda x, u: lax.dynamic_update_slice(x, u[:2], (9, 0)), X, Y),
        of(lambda b, i: lax.dynamic_update_slice(b, b[:1], (i,)), BOOLS, np.array(1)),
    ],
    "lu": [
        of(jnp.linalg.solve, SQUARE, X[:, 0]),
        *(of(jax.scipy.linalg.lu, each) for each in (SQUARE[::-1], X, X.T, Z.T)),
        of(lambda x: lax.linalg.lu(x)[::2], np.stack([X, Y])),
        of(lambda a, b: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b), SQUARE, X),
    ],
    "custom_linear_solve": [of(jnp.linalg.solve, SQUARE, X), of(jnp.linalg.solve, HERMITIAN, Z)],
    "cholesky": [of(jnp.linalg.cholesky, SQUARE), of(jnp.linalg.cholesky, HERMITIAN)],
    "triangular_solve": [
        of(
            lambda a, b, options=options: lax.linalg.triangular_solve(a, b, left_side=False, **options),
            SQUARE,
            X.T,
        )
        for options in ({}, {"lower": True}, {"transpose_a": True}, {"lower": True, "unit_diagonal": True})
    ]
    + [
        of(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, unit_diagonal=True), SQUARE, X),
        of(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, conjugate_a=True), HERMITIAN, Z),
        of(lambda a, b: lax.linalg.triangular_solve(a, b, transpose_a=True, conjugate_a=True), HERMITIAN, Z.T),
    ],
    "random_seed": [
        of(lambda seed: jax.random.key_data(jax.random.key(seed)), seed)
        for seed in (np.int64(2**40 + 3), np.int64(-5), np.int32(-5))
    ],
    "random_wrap": [of(lambda key: jax.random.key_data(jax.random.wrap_key_data(key)), KEY)],
    "random_unwrap": [of(lambda key: jax.random.key_data(jax.random.wrap_key_data(key)), KEY)],
    "random_clone": [of(lambda key: jax.random.key_data(jax.random.clone(jax.random.wrap_key_data(key))), KEY)],
    "random_split": [of(lambda key: wide(key, 3), KEY), of(lambda key: wide(key, (2, 3)), KEY)],
    "random_fold_in": [
        of(jax.random.fold_in, KEY, np.int64(2**33 + 1)),
        of(lambda key: jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(3)), KEY),
    ],
    "random_bits": [
        of(lambda key: jax.random.bits(key, (5,), "uint32"), KEY),
        of(lambda key: jax.random.uniform(key, (2, 3)), KEY),
        of(lambda key: jax.random.uniform(key, (2, 3), "float32", 1.0, 3.0), KEY),
        of(lambda key: jax.random.normal(key, (50,)), KEY),
        of(lambda key: jax.random.randint(key, (9,), 0, 7, "int32"), KEY),
        of(lambda key: jax.vmap(lambda k: jax.random.uniform(k, (2,)))(wide(key, (2, 3)).reshape(6, 2)), KEY),
    ],
    "scan": [
        of(lambda c, x: lax.scan(lambda c, x: (c * x, c + x), c, x), X[0], Y),
        of(lambda c, x: lax.scan(lambda c, x: (c * x, c + x), c, x, reverse=True), X[0], Y),
        of(lambda c: lax.scan(lambda c, _: (jnp.sin(c), None), c, None, length=4)[0], X[0]),
    ],
    "while": [of(lambda x, n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x)), X, 3)],
    "cond": [
        of(lambda x: lax.cond(x.sum() > 9, jnp.sin, jnp.cos, x), X),
        *(of(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), np.int32(i), X) for i in (-3, 0, 1, 2, 9)),
        of(lambda x: lax.switch(1, [jnp.sin, jnp.cos], x), X),
    ],
    "platform_index": [of(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.sin), X)],
    "jit": [*unary(jax.jit(jnp.sin)), of(jax.scipy.linalg.expm, SQUARE / 3), of(jax.scipy.linalg.expm, HERMITIAN / 3)],
    "remat2": unary(jax.checkpoint(lambda x: jnp.sin(jnp.exp(x)))),
    "custom_jvp_call": [
        *unary(jax.nn.relu, np.where(Y > 0, X, 0)),
        *unary(jax.nn.softplus),
        of(jnp.logaddexp, X, Y),
        of(jax.scipy.special.xlogy, np.where(Y > 0, X, 0), P),
        of(jnp.linalg.slogdet, SQUARE),
        of(jnp.linalg.det, positive(1, 4)),
    ],
    "custom_vjp_call": unary(halved_back),
    "custom_vmap_call": unary(magnitude, INTEGERS),
    "composite": unary(lax.composite(jnp.abs, "magnitude"), INTEGERS),
}

# of complex numbers, what is of real ones above
SAMPLES["abs"] += unary(jnp.abs, Z)
for _name in ("cos", "cosh", "exp", "log", "logistic", "neg", "rsqrt", "sin", "sinh", "sqrt", "square"):
    SAMPLES[_name] += unary(getattr(lax, _name), Z)
for _name in ("stop_gradient", "tan", "tanh"):
    SAMPLES[_name] += unary(getattr(lax, _name), Z)
for _name in ("add", "mul", "sub", "eq", "ne"):
    SAMPLES[_name] += [of(getattr(lax, _name), Z, W)]
SAMPLES["mul"] += [of(lambda z: (2.5 + 1j) * z * 2, Z)]
SAMPLES["integer_pow"] += [of(lambda z, n=n: lax.integer_pow(z, n), Z) for n in (-3, 2, 5)]
SAMPLES["pow"] += [of(lambda z: z**2.5, Z), of(lambda z: lax.pow(z, 3.0 + 0j), Z)]
SAMPLES["convert_element_type"] += [
    of(lambda x: x.astype("complex128"), X),
    of(lambda z: z.astype("complex64"), Z),
    of(lambda z: lax.convert_element_type_p.bind(z, new_dtype=np.dtype(bool), weak_type=False, sharding=None), Z),
    of(lambda x: x.astype("int16"), INTEGERS),
]
SAMPLES["reduce_sum"] += [of(lambda z: z.sum(1) + z.mean(1), Z), of(lambda x: x.sum(0), SHORT)]
SAMPLES["reduce_prod"] += [of(lambda z: z.prod(1), Z)]
SAMPLES["dot_general"] += [of(lambda a, b: a @ b, Z, W.T), of(lambda a, b: jnp.einsum("ij,kj->kij", a, b), Z, W)]
SAMPLES["select_n"] += [of(lax.select, X > 0, Z, W)]
SAMPLES["gather"] += [of(lambda z, i: z[i[:, 0] - 3, i[:, 0]], Z, INDEX)]
SAMPLES["scatter"] += [of(lambda z, w, i: jnp.asarray(z).at[i[:, 0] - 3].set(w), Z, W, INDEX)]
SAMPLES["scatter-add"] += [of(lambda z, w, i: jnp.asarray(z).at[i[:, 0], i[:, 0]].add(w[0, :3]), Z, W, INDEX)]
SAMPLES["scatter-max"] += [of(lambda x, i: jnp.asarray(x).at[i].max(np.int16(2)), SHORT[0], np.array([2, 0, 2]))]
SAMPLES["dynamic_slice"] += [
    of(lambda z, i: lax.dynamic_slice(z, (i, 0), (1, 4)), Z, np.int64(-9)),
    of(lambda b, i: lax.dynamic_slice(b, (i,), (2,)), BOOLS, np.array(9)),
    of(lambda keys, i: jax.random.key_data(jax.random.wrap_key_data(keys)[i]), np.stack([KEY, KEY + 1]), np.array(1)),
]
SAMPLES["dynamic_update_slice"] += [of(lambda z, w, i: lax.dynamic_update_slice(z, w[:2], (i, 1)), Z, W, np.int64(-2))]
SAMPLES["scan"] += [of(lambda c, x: lax.scan(lambda c, x: (c * x, c + x), c, x), Z[0], W)]
SAMPLES["custom_vjp_call"] += unary(turned_back, Z)
SAMPLES["custom_jvp_call"] += [of(jnp.linalg.det, np.ones((4, 4))), of(jnp.linalg.det, HERMITIAN @ HERMITIAN.T)]
SAMPLES["pad"] += [of(lambda z: lax.pad(z, 0j, ((1, 2, 1), (0, 1, 0))), Z)]
SAMPLES["broadcast_in_dim"] += [of(lambda z: jnp.broadcast_to(z, (2, 3, 4)), Z)]
