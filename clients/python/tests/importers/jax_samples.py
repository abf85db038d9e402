"""JAX functions with arguments that run each primitive that has a rule."""

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
#: off the branch cuts of complex functions
Z, W = X + 1j * normal(7, 3, 4), normal(8, 3, 4) + 1j * Y
HERMITIAN = SQUARE + np.triu(normal(9, 3, 3) * 1j, 1)
SHORT = INTEGERS.astype(np.int16)


def case(function: Callable[..., Any], *arguments: Any) -> Sample:
    return function, arguments


def unary(function: Callable[[Any], Any], x: Any = X) -> list[Sample]:
    return [case(function, x)]


def numbers(
    offsets: tuple[int, ...], collapsed: tuple[int, ...], index_map: tuple[int, ...]
) -> lax.GatherDimensionNumbers:
    return lax.GatherDimensionNumbers(offsets, collapsed, index_map)


def scattered(function: Any, **options: Any) -> list[Sample]:
    """Scatters of rows, elements and windows; indices out of range are dropped or clipped."""
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    windows = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    distinct, beyond = np.array([[2], [0]]), np.array([[2], [7], [-1]])
    places = np.array([[1, 2], [0, 0]])
    return [
        case(lambda x, u: function(x, distinct, u, rows, unique_indices=True, **options), X, Y[:2]),
        case(lambda x, u, i: function(x, i, u, rows, unique_indices=True, **options), X, Y[:2], distinct),
        case(lambda x, u: function(x, beyond, u, rows, unique_indices=True, **options), X, Y),
        case(lambda x, u, i: function(x, i, u, rows, unique_indices=True, **options), X, Y, beyond),
        case(lambda x, u: function(x, beyond[:1] + 4, u, rows, mode="clip", unique_indices=True), X, Y[:1]),
        case(lambda x, u: function(x, places[:1], u[None, :2, :2], windows, unique_indices=True), X, Y),
    ]


def threefold(function: Any) -> list[Sample]:
    """Cases along both axes, from both ends, and with equal entries."""
    return [case(lambda x: function(x, 0), X), case(lambda x: function(x, 1, reverse=True), np.round(X))]


def convolved(**options: Any) -> Sample:
    settings = {"window_strides": (1, 1), "padding": "VALID", "dimension_numbers": ("NHWC", "HWIO", "NHWC"), **options}
    groups = settings.get("feature_group_count", 1)
    features = 4 if "batch_group_count" in options else 3
    return case(lambda x, k: lax.conv_general_dilated(x, k, **settings), IMAGE, normal(5, 3, 2, 3 // groups, features))


def windowed(function: Any, first: float, **options: Any) -> Sample:
    settings = {"window_dimensions": (1, 2, 3, 1), "window_strides": (1, 2, 1, 1), "padding": "VALID", **options}
    return case(lambda x: lax.reduce_window(x, first, function, **settings), IMAGE)


def slope_of_pool(padding: str, least: bool = False) -> Any:
    """The gradient of a max or min pool."""
    function, first = (lax.min, np.inf) if least else (lax.max, -np.inf)
    windows = (1, 3, 2, 1), (1, 2, 1, 1), padding
    return jax.grad(lambda x: (lax.reduce_window(x, first, function, *windows) ** 3).sum())


@jax.custom_vjp
def halved_back(x: Any) -> Any:
    """Twice x, with a gradient rule that disagrees."""
    return 2 * x


halved_back.defvjp(lambda x: (halved_back(x), None), lambda _, g: (0.5 * g,))


@jax.custom_vjp
def turned_back(x: Any) -> Any:
    """Twice x, with a rule that rotates cotangents, which are the conjugates of ours."""
    return 2 * x


turned_back.defvjp(lambda x: (turned_back(x), None), lambda _, g: ((0.5 + 1j) * g,))
wide = lambda key, shape: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key), shape))

magnitude = jax.custom_batching.custom_vmap(jnp.abs)
magnitude.def_vmap(lambda size, batched, x: (jnp.abs(x), batched[0]))


def projected(x: Any) -> Any:
    """Results that do not depend on the phases of eigenvectors."""
    w, v = jnp.linalg.eigh(x)
    return w, (v * jnp.tanh(w)[..., None, :]) @ v.conj().mT


def without_phases(x: Any) -> Any:
    """Results that do not depend on the phases of singular vectors."""
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
    **{name: [case(getattr(lax, name), X, np.where(Y > 0, X, Y))] for name in ("eq", "ge", "gt", "le", "lt", "ne")},
    "acosh": unary(lax.acosh, P + 1),
    **{name: unary(getattr(lax, name), Z) for name in ("real", "imag")},
    "conj": [*unary(jnp.conj, Z), *unary(lax.conj)],
    "complex": [case(lax.complex, X, Y), case(lambda z: lax.complex(jnp.abs(z), jnp.angle(z)), Z)],
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
        case(jnp.linalg.eigh, SQUARE),
        case(projected, np.stack([HERMITIAN, HERMITIAN.T])),
        case(jnp.linalg.eigvalsh, SQUARE),
    ],
    "svd": [
        case(without_phases, X),
        case(without_phases, Z.T),
        case(lambda x: jnp.linalg.svd(x, compute_uv=False), Z),
        case(jnp.linalg.pinv, X),
        case(lambda a, b: jnp.linalg.lstsq(a, b)[0], X.T, X[:2].T),
    ],
    "qr": [
        case(jnp.linalg.qr, X.T),
        case(jnp.linalg.qr, Z.T),
        case(lambda x: jnp.linalg.qr(x, mode="complete"), SQUARE),
    ],
    "add": [
        case(lax.add, X, Y),
        case(lambda x: x + 2.5, X),
        case(lambda x: 2.5 + x, X),
        case(lax.add, INTEGERS, OTHERS),
    ],
    "add_any": [case(lambda x: jax.vjp(lambda y: (y, jnp.sin(y)), x)[1]((x, x)), X)],
    "sub": [case(lax.sub, X, Y), case(lambda x: x - 2.5, X), case(lambda x: 2.5 - x, X)],
    "mul": [case(lax.mul, X, Y), case(lambda x: x * 2.5, X), case(lax.mul, INTEGERS, OTHERS)],
    "div": [
        case(lax.div, X, P),
        case(lambda x: x / 2.5, X),
        case(lambda x: 1 / x, P),
        case(lambda x: x.mean(1) + x.sum(1) / 3, X),
        case(lambda x: x.mean(1, keepdims=True), X),
        case(lax.div, INTEGERS, OTHERS),
        case(lax.div, UNSIGNED, np.array([1, 2, 3, 7], np.uint32)),
        case(lax.div, np.array([2**62 + 1, -(2**62) - 3]), np.array([3, 7])),
        *(case(lax.div, each, each[::-1] * 0) for each in (SHORT, UNSIGNED)),
        case(lambda x: lax.div(x, np.int64(-3)), INTEGERS),
        case(lax.div, Z, W),
        case(lambda x: 1 / x + x / 2.5, Z),
    ],
    "rem": [
        *(case(lax.rem, X, P), case(lax.rem, INTEGERS, OTHERS), case(lax.rem, UNSIGNED, UNSIGNED[::-1] + 1)),
        case(lambda x: lax.rem(x, np.int64(-3)), INTEGERS),
        case(lax.rem, SHORT, SHORT * 0),
    ],
    "max": [
        case(lax.max, X, np.where(Y > 0, X, Y)),
        case(lax.max, BOOLS, BOOLS[::-1]),
        case(lax.max, INTEGERS, OTHERS),
    ],
    "min": [case(lax.min, X, np.where(Y > 0, X, Y)), case(lax.min, BOOLS, BOOLS[::-1])],
    "atan2": [case(lax.atan2, X, Y)],
    "integer_pow": [case(lambda x, n=n: lax.integer_pow(x, n), X) for n in (-2, -1, 2, 3, 5)]
    + [case(lambda x: lax.integer_pow(x, 3), INTEGERS)],
    "pow": [case(lax.pow, P, Y), case(lambda x: x**2.5, P), case(lambda x: lax.pow(x, 3), X)],
    "round": [
        case(lambda x, m=m: lax.round(x, m), np.array([-1.5, -0.5, 0.49999999999999994, 0.5, 2.5, 2.6]))
        for m in lax.RoundingMethod
    ],
    "clamp": [
        case(lax.clamp, np.full_like(X, -0.2), np.where(Y > 0, -0.2, X), np.full_like(X, 0.3)),
        case(lambda x: lax.clamp(-0.2, x, 0.3), X),
        case(lambda x: lax.clamp(-2, x, 4), INTEGERS),
    ],
    "select_n": [
        case(lax.select, X > 0, X, Y),
        case(lambda i, x: lax.select_n(i, x, x * 2, x**2), np.array([0, 2, 1], np.int32), X[0, :3]),
        case(lambda x: lax.select(np.ones((3, 4), bool), x, x * 2), X),
        case(lambda c: lax.select(c, BOOLS, ~BOOLS), BOOLS),
    ],
    **{
        name: [case(function, np.array([0.0, -0.0, 1.0, np.nan]), np.array([-0.0, 0.0, np.nan, np.nan]))]
        for name, function in {
            "lt_to": lax.lt_to_p.bind,
            "le_to": lax.le_to_p.bind,
            "eq_to": lax.eq_to_p.bind,
        }.items()
    },
    **{name: [case(getattr(lax, name), P, P[::-1] + 0.5)] for name in ("igamma", "igammac")},
    # JAX does not differentiate it
    "zeta": [case(lambda x: lax.zeta(jnp.full_like(x, 2.5), lax.stop_gradient(x)), P)],
    # JAX has no gradient with respect to the shape parameters
    "regularized_incomplete_beta": [
        case(lambda x: lax.betainc(jnp.full_like(x, 1.5), jnp.full_like(x, 0.7), x), P / 4)
    ],
    **{name: unary(getattr(lax, name), 4 * X) for name in ("bessel_i0e", "bessel_i1e")},
    "polygamma": [case(lambda x: lax.polygamma(jnp.full_like(x, 2.0), x), P)],
    **{
        name: [
            case(function, BOOLS, ~BOOLS[::-1]),
            case(function, NARROW, SHIFTS),
            case(function, UNSIGNED, UNSIGNED[::-1]),
        ]
        for name, function in {
            "and": lax.bitwise_and,
            "or": lax.bitwise_or,
            "xor": lax.bitwise_xor,
        }.items()
    },
    "not": [case(lax.bitwise_not, BOOLS), case(lax.bitwise_not, NARROW), case(lax.bitwise_not, UNSIGNED)],
    "shift_left": [case(lax.shift_left, NARROW, SHIFTS)],
    "shift_right_arithmetic": [case(lax.shift_right_arithmetic, NARROW, SHIFTS)],
    "shift_right_logical": [case(lax.shift_right_logical, NARROW, SHIFTS)],
    "population_count": [case(lax.population_count, NARROW), case(lax.population_count, UNSIGNED)],
    "convert_element_type": [
        case(lambda x: x.astype("float32"), X),
        case(lambda x: (x * 9).astype("int32"), X),
        case(lambda x: x.astype(bool), INTEGERS),
    ],
    "bitcast_convert_type": [case(lambda key: jax.random.uniform(key, (3,)), KEY)],
    "reduce_precision": [
        case(lambda x: lax.reduce_precision(x, 8, 23), X),
        case(lambda x: lax.reduce_precision(x, 11, 52), X),
    ],
    "copy": unary(jnp.copy),
    "device_put": unary(jax.device_put),
    "name": unary(lambda x: checkpoint_name(x, "kept")),
    "optimization_barrier": [case(lambda x, y: lax.optimization_barrier((x, y)), X, Y)],
    "reduce_sum": [case(lambda x: x.sum(1), X), case(lambda x: x.sum(), INTEGERS), case(lambda x: x.sum(0), BOOLS)],
    "reduce_prod": [case(lambda x: x.prod(1), X), case(lambda x: x.prod(0), NARROW)],
    "reduce_max": [case(lambda x: x.max(1), np.round(X)), case(lambda x: x.max(), BOOLS)],
    "reduce_min": [case(lambda x: x.min(1), np.round(X))],
    "reduce_or": [case(lambda x: x.any(0), BOOLS), case(lambda x: (x > 0).any(1), X)],
    "reduce_and": [case(lambda x: x.all(0), BOOLS)],
    "reduce_xor": [case(lambda x: lax.reduce_xor_p.bind(x, axes=(0,)), BOOLS)],
    "argmax": [case(lambda x: jnp.argmax(x, 1), np.round(X)), case(lambda x: lax.argmax(x, 0, "int32"), BOOLS)],
    "argmin": [case(lambda x: jnp.argmin(x, 0), np.round(X))],
    "cumsum": [*threefold(lax.cumsum), case(lambda x: lax.cumsum(x, 1), NARROW), case(lambda x: lax.cumsum(x, 0), Z)],
    "cumprod": [
        *threefold(lax.cumprod),
        case(lambda x: lax.cumprod(x, 1, reverse=True), NARROW),
        case(lambda x: lax.cumprod(x, 0), Z),
    ],
    "cummax": [*threefold(lax.cummax), case(lambda x: lax.cummax(x, 1, reverse=True), SHORT)],
    "cummin": [*threefold(lax.cummin), case(lambda x: lax.cummin(x, 1), SHORT)],
    "cumlogsumexp": threefold(lax.cumlogsumexp),
    "sort": [
        case(lambda x: lax.sort(x, dimension=0), X),
        case(lambda x, y: lax.sort((jnp.round(x), y), num_keys=1), X, Y),
        case(lambda x, y: lax.sort((jnp.round(x), jnp.round(y), x), num_keys=2), X, Y),
        case(lax.sort, BOOLS),
    ],
    "top_k": [case(lambda x: lax.top_k(x, 2), np.round(X))],
    "reshape": [case(lambda x: x.reshape(2, 6), X), case(lambda x: lax.reshape(x, (6, 2), (1, 0)), X)],
    "squeeze": [case(lambda x: x[None].squeeze(0), X)],
    "broadcast_in_dim": [
        case(lambda x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (1, 3)), X),
        case(lambda x: jnp.broadcast_to(x.sum(), (2, 3)), X),
    ],
    "transpose": [case(lambda x: x.transpose(2, 0, 3, 1), IMAGE)],
    "rev": [case(lambda x: lax.rev(x, (0, 1)), X)],
    "slice": [case(lambda x: x[1:, ::2], X), case(lambda x: x[:2, 1:3], X)],
    "concatenate": [case(lambda x, y: jnp.concatenate([x, y, x], 1), X, Y)],
    "stack": [case(lambda x, y: lax.stack_p.bind(x, y, axis=1), X, Y)],
    "unstack": [case(lambda x: tuple(lax.unstack_p.bind(x, axis=1)), X)],
    "split": [case(lambda x: jnp.split(x, [1, 3], axis=1), X)],
    "tile": [case(lambda x: lax.tile(x, (2, 3)), X)],
    "pad": [
        case(lambda x: lax.pad(x, 0.0, ((1, 2, 0), (0, 1, 0))), X),
        case(lambda x, v: lax.pad(x, v, ((1, -1, 0), (-2, 1, 0))), X, np.array(1.5)),
        case(lambda x, v: lax.pad(x, v, ((0, 1, 2), (-1, 0, 1))), X, np.array(1.5)),
        case(lambda x: lax.pad(x, True, ((1, 0, 1),)), BOOLS),
        case(lambda x: jnp.exp(lax.pad(x, -np.inf, ((1, 0, 0), (0, 2, 1)))), X),
        case(lambda a: lax.pad(a, np.int64(-7), ((1, 0, 0), (0, 2, 0))), INTEGERS),
    ],
    "iota": [case(lambda x: x + lax.broadcasted_iota("float64", (40, 50), 1), normal(1, 40, 50))],
    "dot_general": [
        case(lambda a, b: a @ b, X, Y.T),
        case(lambda a, b: lax.dot_general(a, b, (((1,), (2,)), ((0,), (1,)))), normal(1, 2, 3, 4), normal(2, 5, 2, 3)),
        case(lambda a, b: jnp.einsum("bij,bjk->bik", a, b), normal(1, 2, 3, 4), normal(2, 2, 4, 5)),
        case(lambda a, b: a @ b, INTEGERS, OTHERS.T),
        case(lambda a, b: lax.dot(a, b, preferred_element_type="float64"), np.float32(X), np.float32(Y.T)),
    ],
    "conv_general_dilated": [
        convolved(),
        convolved(window_strides=(2, 1), padding=((1, 2), (0, 1)), rhs_dilation=(2, 2)),
        convolved(padding=((-1, 2), (0, -2)), lhs_dilation=(2, 3)),
        convolved(feature_group_count=3),
        convolved(batch_group_count=2),
        case(lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID", batch_group_count=2), FOUR, normal(2, 4, 3, 2)),
        case(lambda x, k: lax.conv(x, k, (2,), "SAME"), normal(1, 2, 3, 8), normal(2, 4, 3, 3)),
        case(lambda x, k: lax.conv(x, k, (1, 2, 1), "SAME"), normal(1, 1, 2, 3, 4, 3), normal(2, 2, 2, 2, 2, 2)),
    ],
    "reduce_window_sum": [
        windowed(lax.add, 0.0),
        windowed(lax.add, 0.0, padding="SAME", window_dilation=(1, 2, 1, 1), base_dilation=(1, 1, 2, 1)),
        case(lambda x: lax.reduce_window(x, np.int64(0), lax.add, (1, 2), (1, 1), "SAME"), INTEGERS),
    ],
    "reduce_window_max": [
        windowed(lax.max, -np.inf, padding="SAME"),
        case(lambda x: lax.reduce_window(x, -np.inf, lax.max, (3,), (2,), "SAME"), X[0]),
        case(lambda x: lax.reduce_window(jnp.round(x), -np.inf, lax.max, (2, 2), (1, 1), "SAME"), X),
        case(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2, 2, 1), (1, 2, 1, 1), "SAME"), IMAGE),
        # JAX has no gradient of windows with gaps
        case(
            lambda x: lax.reduce_window(
                lax.stop_gradient(x), -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 1, 1), "SAME", None, (1, 1, 2, 1)
            ),
            IMAGE,
        ),
    ],
    "reduce_window_min": [windowed(lax.min, np.inf, padding="SAME")],
    "select_and_scatter_add": [
        case(slope_of_pool(**options), IMAGE) for options in ({"padding": "SAME"}, {"padding": "VALID", "least": True})
    ],
    "gather": [
        case(lambda x, i: x[i[:, 0]], X, INDEX),
        case(lambda x: x[:, INDEX[:, 0]], X),
        case(lambda x, i: lax.gather(x, i, numbers((1, 2), (), (0, 1)), (2, 3)), X, np.array([[1, 1], [0, 0]])),
        case(lambda x, i: lax.gather(x, i, numbers((1,), (0,), (0,)), (1, 4), mode="clip"), X, INDEX + 2),
        case(
            lambda x, i: lax.gather(x, i, numbers((1,), (0,), (0,)), (1, 4), mode="fill", fill_value=3.0), X, INDEX + 2
        ),
        case(lambda x: lax.gather(x, INDEX - 1, numbers((1,), (0,), (0,)), (1, 3), mode="fill"), INTEGERS),
        case(lambda x, i: x[i, :, i + 1], FOUR, INDEX),
        case(lambda x, i: x[:, i, -i], FOUR, INDEX[:, 0]),
        case(lambda x, i: x[:, INDEX, i], FOUR, INDEX[:, 0]),
        case(lambda x, i: x[i, i, i], FOUR, np.array(-2)),
        case(lambda x, i: jnp.asarray(x).at[:, i, i].get(mode="fill", fill_value=3.0), FOUR, INDEX + 1),
        case(lambda x, i: jnp.asarray(x).at[i, :, i + 2].get(mode="clip"), FOUR, INDEX[:, 0] + 1),
        case(lambda keys, i: jax.random.uniform(jax.random.wrap_key_data(keys)[i, 0][1], (2,)), KEYS, INDEX[:, 0]),
        case(jax.vmap(lambda row, index: row[index]), X, INDEX),
        case(lambda x, i: jnp.take_along_axis(x, i, axis=1), X, np.array([[3, 0], [1, 1], [2, 3]])),
    ],
    "scatter": [
        *scattered(lax.scatter),
        case(lambda x, u: jnp.asarray(x).at[np.array([2, 0, 2])].set(u), X, Y),
        case(lambda x, u, i: jnp.asarray(x).at[i].set(u), X, Y, np.array([2, 0, 2])),
        case(lambda b, i: jnp.asarray(b).at[i].set(True), BOOLS, np.array([1])),
    ],
    "scatter-add": [*scattered(lax.scatter_add), case(lambda x, u, i: jnp.asarray(x).at[i[:, 0]].add(u), X, Y, INDEX)],
    "scatter-sub": [case(lambda x, u, i: jnp.asarray(x).at[i[:, 0]].subtract(u), X, Y, INDEX)],
    "scatter-mul": scattered(lax.scatter_mul),
    "scatter-max": [case(lambda x, i: jnp.asarray(x).at[i].max(np.arange(3)), INTEGERS[0], np.array([2, 0, 2]))],
    "scatter-min": [case(lambda x, i: jnp.asarray(x).at[i].min(np.arange(3)), INTEGERS[0], np.array([2, 0, 2]))],
    "dynamic_slice": [
        case(lambda x, i: lax.dynamic_slice(x, (i, i - 1), (2, 3)), X, np.array(2)),
        case(lambda x: lax.dynamic_slice(x, (7, 1), (2, 3)), X),
    ],
    "dynamic_update_slice": [
        case(lambda x, u, i: lax.dynamic_update_slice(x, u[:2, :3], (i, 0)), X, Y, np.array(2)),
        case(lambda x, u: lax.dynamic_update_slice(x, u[:2], (9, 0)), X, Y),
        case(lambda b, i: lax.dynamic_update_slice(b, b[:1], (i,)), BOOLS, np.array(1)),
    ],
    "lu": [
        case(jnp.linalg.solve, SQUARE, X[:, 0]),
        *(case(jax.scipy.linalg.lu, each) for each in (SQUARE[::-1], X, X.T, Z.T)),
        case(lambda x: lax.linalg.lu(x)[::2], np.stack([X, Y])),
        case(lambda a, b: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b), SQUARE, X),
    ],
    "custom_linear_solve": [case(jnp.linalg.solve, SQUARE, X), case(jnp.linalg.solve, HERMITIAN, Z)],
    "cholesky": [case(jnp.linalg.cholesky, SQUARE), case(jnp.linalg.cholesky, HERMITIAN)],
    "triangular_solve": [
        case(
            lambda a, b, options=options: lax.linalg.triangular_solve(a, b, left_side=False, **options),
            SQUARE,
            X.T,
        )
        for options in ({}, {"lower": True}, {"transpose_a": True}, {"lower": True, "unit_diagonal": True})
    ]
    + [
        case(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, unit_diagonal=True), SQUARE, X),
        case(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, conjugate_a=True), HERMITIAN, Z),
        case(lambda a, b: lax.linalg.triangular_solve(a, b, transpose_a=True, conjugate_a=True), HERMITIAN, Z.T),
    ],
    "random_seed": [
        case(lambda seed: jax.random.key_data(jax.random.key(seed)), seed)
        for seed in (np.int64(2**40 + 3), np.int64(-5), np.int32(-5))
    ],
    "random_wrap": [case(lambda key: jax.random.key_data(jax.random.wrap_key_data(key)), KEY)],
    "random_unwrap": [case(lambda key: jax.random.key_data(jax.random.wrap_key_data(key)), KEY)],
    "random_clone": [case(lambda key: jax.random.key_data(jax.random.clone(jax.random.wrap_key_data(key))), KEY)],
    "random_split": [case(lambda key: wide(key, 3), KEY), case(lambda key: wide(key, (2, 3)), KEY)],
    "random_fold_in": [
        case(jax.random.fold_in, KEY, np.int64(2**33 + 1)),
        case(lambda key: jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(3)), KEY),
    ],
    "random_bits": [
        case(lambda key: jax.random.bits(key, (5,), "uint32"), KEY),
        case(lambda key: jax.random.uniform(key, (2, 3)), KEY),
        case(lambda key: jax.random.uniform(key, (2, 3), "float32", 1.0, 3.0), KEY),
        case(lambda key: jax.random.normal(key, (50,)), KEY),
        case(lambda key: jax.random.randint(key, (9,), 0, 7, "int32"), KEY),
        case(lambda key: jax.vmap(lambda k: jax.random.uniform(k, (2,)))(wide(key, (2, 3)).reshape(6, 2)), KEY),
    ],
    "scan": [
        case(lambda c, x: lax.scan(lambda c, x: (c * x, c + x), c, x), X[0], Y),
        case(lambda c, x: lax.scan(lambda c, x: (c * x, c + x), c, x, reverse=True), X[0], Y),
        case(lambda c: lax.scan(lambda c, _: (jnp.sin(c), None), c, None, length=4)[0], X[0]),
    ],
    "while": [case(lambda x, n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x)), X, 3)],
    "cond": [
        case(lambda x: lax.cond(x.sum() > 9, jnp.sin, jnp.cos, x), X),
        *(case(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), np.int32(i), X) for i in (-3, 0, 1, 2, 9)),
        case(lambda x: lax.switch(1, [jnp.sin, jnp.cos], x), X),
    ],
    "platform_index": [case(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.sin), X)],
    "jit": [
        *unary(jax.jit(jnp.sin)),
        case(jax.scipy.linalg.expm, SQUARE / 3),
        case(jax.scipy.linalg.expm, HERMITIAN / 3),
    ],
    "remat2": unary(jax.checkpoint(lambda x: jnp.sin(jnp.exp(x)))),
    "custom_jvp_call": [
        *unary(jax.nn.relu, np.where(Y > 0, X, 0)),
        *unary(jax.nn.softplus),
        case(jnp.logaddexp, X, Y),
        case(jax.scipy.special.xlogy, np.where(Y > 0, X, 0), P),
        case(jnp.linalg.slogdet, SQUARE),
        case(jnp.linalg.det, positive(1, 4)),
    ],
    "custom_vjp_call": unary(halved_back),
    "custom_vmap_call": unary(magnitude, INTEGERS),
    "composite": unary(lax.composite(jnp.abs, "magnitude"), INTEGERS),
}

# complex samples of primitives with real ones above
SAMPLES["abs"] += unary(jnp.abs, Z)
for _name in ("cos", "cosh", "exp", "log", "logistic", "neg", "rsqrt", "sin", "sinh", "sqrt", "square"):
    SAMPLES[_name] += unary(getattr(lax, _name), Z)
for _name in ("stop_gradient", "tan", "tanh"):
    SAMPLES[_name] += unary(getattr(lax, _name), Z)
for _name in ("add", "mul", "sub", "eq", "ne"):
    SAMPLES[_name] += [case(getattr(lax, _name), Z, W)]
SAMPLES["mul"] += [case(lambda z: (2.5 + 1j) * z * 2, Z)]
SAMPLES["integer_pow"] += [case(lambda z, n=n: lax.integer_pow(z, n), Z) for n in (-3, 2, 5)]
SAMPLES["pow"] += [case(lambda z: z**2.5, Z), case(lambda z: lax.pow(z, 3.0 + 0j), Z)]
SAMPLES["convert_element_type"] += [
    case(lambda x: x.astype("complex128"), X),
    case(lambda z: z.astype("complex64"), Z),
    case(lambda z: lax.convert_element_type_p.bind(z, new_dtype=np.dtype(bool), weak_type=False, sharding=None), Z),
    case(lambda x: x.astype("int16"), INTEGERS),
]
SAMPLES["reduce_sum"] += [case(lambda z: z.sum(1) + z.mean(1), Z), case(lambda x: x.sum(0), SHORT)]
SAMPLES["reduce_prod"] += [case(lambda z: z.prod(1), Z)]
SAMPLES["dot_general"] += [case(lambda a, b: a @ b, Z, W.T), case(lambda a, b: jnp.einsum("ij,kj->kij", a, b), Z, W)]
SAMPLES["select_n"] += [case(lax.select, X > 0, Z, W)]
SAMPLES["gather"] += [case(lambda z, i: z[i[:, 0] - 3, i[:, 0]], Z, INDEX)]
SAMPLES["scatter"] += [case(lambda z, w, i: jnp.asarray(z).at[i[:, 0] - 3].set(w), Z, W, INDEX)]
SAMPLES["scatter-add"] += [case(lambda z, w, i: jnp.asarray(z).at[i[:, 0], i[:, 0]].add(w[0, :3]), Z, W, INDEX)]
SAMPLES["scatter-max"] += [case(lambda x, i: jnp.asarray(x).at[i].max(np.int16(2)), SHORT[0], np.array([2, 0, 2]))]
SAMPLES["dynamic_slice"] += [
    case(lambda z, i: lax.dynamic_slice(z, (i, 0), (1, 4)), Z, np.int64(-9)),
    case(lambda b, i: lax.dynamic_slice(b, (i,), (2,)), BOOLS, np.array(9)),
    case(lambda keys, i: jax.random.key_data(jax.random.wrap_key_data(keys)[i]), np.stack([KEY, KEY + 1]), np.array(1)),
]
SAMPLES["dynamic_update_slice"] += [
    case(lambda z, w, i: lax.dynamic_update_slice(z, w[:2], (i, 1)), Z, W, np.int64(-2))
]
SAMPLES["scan"] += [case(lambda c, x: lax.scan(lambda c, x: (c * x, c + x), c, x), Z[0], W)]
SAMPLES["custom_vjp_call"] += unary(turned_back, Z)
SAMPLES["custom_jvp_call"] += [case(jnp.linalg.det, np.ones((4, 4))), case(jnp.linalg.det, HERMITIAN @ HERMITIAN.T)]
SAMPLES["pad"] += [case(lambda z: lax.pad(z, 0j, ((1, 2, 1), (0, 1, 0))), Z)]
SAMPLES["broadcast_in_dim"] += [case(lambda z: jnp.broadcast_to(z, (2, 3, 4)), Z)]
