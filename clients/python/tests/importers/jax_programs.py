"""JAX programs with example arguments, which test the importer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

PROGRAMS: dict[str, Program] = {}


@dataclass(frozen=True)
class Program:
    """A function, its arguments, the indices of its parameters, and options of the import."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    parameters: int | tuple[int, ...] = 0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def has_while(self) -> bool:
        """Whether JAX differentiates it only in forward mode."""
        return self.function.__name__ == "adaptive_ode"


def program(*arguments: Any, parameters: int | tuple[int, ...] = 0, **options: Any) -> Callable[[Any], Any]:
    """Register a function as a program under its name."""

    def put(function: Any) -> Any:
        PROGRAMS[function.__name__] = Program(function, arguments, parameters, options)
        return function

    return put


def normal(seed: int, *shape: int, scale: float = 0.5) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape) * scale


def tree(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Normal numbers by name."""
    return {name: normal(seed + i, *shape) for i, (name, shape) in enumerate(shapes.items())}


def positive(seed: int, n: int) -> np.ndarray:
    """A symmetric matrix far from singular."""
    a = normal(seed, n, n)
    return a @ a.T + n * np.eye(n)


LABELS = np.array([0, 2, 1, 2, 0])


@program(tree(1, w1=(3, 8), b1=(8,), w2=(8, 2), b2=(2,)), normal(5, 5, 3))
def mlp(params: Any, x: Any) -> Any:
    hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] + params["b2"]) ** 2, axis=0)


@program([tree(i, w=(4, 4), b=(4,)) for i in range(3)], normal(9, 6, 4))
def deep_residual(layers: Any, x: Any) -> Any:
    for layer in layers:
        x = x + jax.nn.gelu(x @ layer["w"] + layer["b"])
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return {"last": x, "norm": jnp.linalg.norm(x, axis=-1)}


@program(tree(1, k1=(3, 3, 2, 4), k2=(3, 3, 4, 4), w=(16, 3)), normal(7, 5, 8, 8, 2), LABELS)
def conv_net(params: Any, images: Any, labels: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(images, params["k1"], (1, 1), "SAME", dimension_numbers=numbers)
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.silu(lax.conv_general_dilated(x, params["k2"], (2, 2), "SAME", dimension_numbers=numbers))
    logits = x.reshape(5, -1) @ params["w"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@program(tree(2, down=(6, 1, 3, 3), point=(4, 6, 1, 1), up=(4, 2, 2, 2)), normal(3, 2, 6, 7, 7))
def depthwise_and_transposed(params: Any, x: Any) -> Any:
    x = lax.conv_general_dilated(
        x, params["down"], (2, 2), ((1, 0), (0, 1)), feature_group_count=6, rhs_dilation=(1, 2)
    )
    x = jnp.tanh(lax.conv_general_dilated(x, params["point"], (1, 1), "VALID"))
    up = lax.conv_transpose(x, params["up"], (2, 2), "SAME", dimension_numbers=("NCHW", "IOHW", "NCHW"))
    return up, lax.reduce_window(up, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 2, 2), "SAME")


@program(tree(3, k=(5, 2, 3)), normal(4, 2, 2, 9))
def causal_conv(params: Any, x: Any) -> Any:
    return jnp.sin(lax.conv_general_dilated(x, params["k"], (1,), ((4, 0),), rhs_dilation=(2,)))


def attention(params: Any, x: Any) -> Any:
    q, k, v = (x @ params[name] for name in ("q", "k", "v"))
    heads = lambda y: y.reshape(*y.shape[:-1], 2, -1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", heads(q), heads(k)) / jnp.sqrt(2.0)
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), heads(v))
    return mixed.reshape(x.shape) @ params["o"]


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    return jax.nn.standardize(x, epsilon=1e-6) * scale + shift


TOKENS = np.array([[1, 4, 2, 0, 3], [2, 2, 1, 4, 0]])


@program(
    {
        "embedding": normal(1, 6, 4),
        "position": normal(2, 5, 4),
        "blocks": [
            tree(10 * i, q=(4, 4), k=(4, 4), v=(4, 4), o=(4, 4), up=(4, 8), down=(8, 4), scale=(4,), shift=(4,))
            for i in range(2)
        ],
        "head": normal(3, 4, 6),
    },
    TOKENS,
)
def transformer(params: Any, tokens: Any) -> Any:
    x = params["embedding"][tokens] + params["position"]
    for block in params["blocks"]:
        x = x + attention(block, layer_norm(x, block["scale"], block["shift"]))
        x = x + jax.nn.gelu(x @ block["up"], approximate=False) @ block["down"]
    targets = jnp.roll(tokens, -1, axis=1)
    log_probabilities = jax.nn.log_softmax(x @ params["head"])
    return -jnp.take_along_axis(log_probabilities, targets[..., None], axis=-1).mean()


@program(tree(1, w=(3, 4), u=(4, 4), b=(4,)), normal(4, 6, 2, 3))
def rnn(params: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(x @ params["w"] + h @ params["u"] + params["b"])
        return h, h

    return lax.scan(step, jnp.zeros((2, 4)), xs)


@program(tree(2, w=(3, 12), u=(4, 12), b=(12,)), normal(4, 6, 2, 3))
def gru(params: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        gates, hidden = x @ params["w"] + params["b"], h @ params["u"]
        (zx, rx, nx), (zh, rh, nh) = jnp.split(gates, 3, -1), jnp.split(hidden, 3, -1)
        z, r = jax.nn.sigmoid(zx + zh), jax.nn.sigmoid(rx + rh)
        h = (1 - z) * jnp.tanh(nx + r * nh) + z * h
        return h, None

    return lax.scan(step, jnp.zeros((2, 4)), xs, reverse=True)[0]


@program(tree(3, w=(3, 16), u=(4, 16), b=(16,), out=(4, 2)), normal(4, 6, 2, 3), np.array([6, 3]))
def lstm_of_lengths(params: Any, xs: Any, lengths: Any) -> Any:
    def step(carry: Any, inputs: Any) -> Any:
        t, x = inputs
        (h, c), before = carry, carry
        i, f, g, o = jnp.split(x @ params["w"] + h @ params["u"] + params["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        goes_on = (t < lengths)[:, None]
        carry = jax.tree.map(lambda new, old: jnp.where(goes_on, new, old), (h, c), before)
        return carry, carry[0] @ params["out"]

    zeros = jnp.zeros((2, 4))
    return lax.scan(step, (zeros, zeros), (jnp.arange(6), xs))


@program([tree(i, scale=(2, 8), out=(8, 4)) for i in range(2)], normal(3, 5, 4))
def coupling_flow(layers: Any, x: Any) -> Any:
    log_det = jnp.zeros(len(x))
    for i, layer in enumerate(layers):
        still, moved = (x[:, :2], x[:, 2:]) if i % 2 else (x[:, 2:], x[:, :2])
        log_scale, shift = jnp.split(jnp.tanh(still @ layer["scale"]) @ layer["out"], 2, axis=-1)
        moved = moved * jnp.exp(log_scale) + shift
        log_det += log_scale.sum(-1)
        x = jnp.concatenate([still, moved] if i % 2 else [moved, still], axis=-1)
    return -(jax.scipy.stats.norm.logpdf(x).sum(-1) + log_det).mean()


@program(tree(4, u=(3,), w=(3,), lower=(3, 3)), normal(3, 5, 3))
def planar_and_linear_flow(params: Any, x: Any) -> Any:
    matrix = jnp.tril(params["lower"], -1) + jnp.diag(jnp.exp(jnp.diag(params["lower"])))
    y = x @ matrix.T
    inner = jnp.tanh(y @ params["w"])
    slope = (1 - inner**2)[:, None] * params["w"]
    log_det = jnp.log(jnp.abs(1 + slope @ params["u"])) + jnp.linalg.slogdet(matrix)[1]
    return y + params["u"] * inner[:, None], log_det


SENDERS, RECEIVERS = np.array([0, 1, 2, 3, 0, 2]), np.array([1, 2, 3, 0, 2, 0])


@program(tree(5, message=(6, 4), update=(7, 3), out=(3, 1)), normal(1, 4, 3), SENDERS, RECEIVERS)
def graph_net(params: Any, nodes: Any, senders: Any, receivers: Any) -> Any:
    for _ in range(2):
        edges = jnp.concatenate([nodes[senders], nodes[receivers]], axis=-1)
        messages = jax.nn.elu(edges @ params["message"])
        total = jax.ops.segment_sum(messages, receivers, num_segments=4)
        nodes = jnp.tanh(jnp.concatenate([nodes, total], axis=-1) @ params["update"])
    return nodes @ params["out"]


@program(tree(6, w=(3, 3), a=(6,)), normal(1, 4, 3), SENDERS, RECEIVERS)
def graph_attention(params: Any, nodes: Any, senders: Any, receivers: Any) -> Any:
    hidden = nodes @ params["w"]
    scores = jax.nn.leaky_relu(jnp.concatenate([hidden[senders], hidden[receivers]], -1) @ params["a"])
    largest = jax.ops.segment_max(scores, receivers, num_segments=4)
    weights = jnp.exp(scores - lax.stop_gradient(largest)[receivers])
    total = jax.ops.segment_sum(weights, receivers, num_segments=4)
    return jnp.zeros_like(hidden).at[receivers].add((weights / total[receivers])[:, None] * hidden[senders])


@program(tree(7, w=(3, 4)), normal(3, 5, 3), normal(4, 5, 4))
def optax_losses(params: Any, x: Any, y: Any) -> Any:
    logits = x @ params["w"]
    return {
        "huber": optax.huber_loss(logits, y),
        "log_cosh": optax.log_cosh(logits, y),
        "sigmoid": optax.sigmoid_binary_cross_entropy(logits, jax.nn.sigmoid(y)),
        "softmax": optax.softmax_cross_entropy(logits, jax.nn.softmax(y)),
        "cosine": optax.cosine_distance(logits, y, epsilon=1e-8),
        "hinge": optax.hinge_loss(logits, jnp.sign(y)),
        "kl": optax.kl_divergence(jax.nn.log_softmax(logits), jax.nn.softmax(y)),
        "focal": optax.sigmoid_focal_loss(logits, (y > 0).astype(y.dtype)),
        "smooth": optax.smooth_labels(jax.nn.softmax(logits), 0.1),
    }


@program(tree(8, w=(3, 4)), normal(3, 5, 3), normal(4, 5, 4))
def step_of_adam(params: Any, x: Any, y: Any) -> Any:
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-1))
    state = optimiser.init(params)
    for _ in range(2):
        gradient = jax.grad(lambda p: optax.l2_loss(jnp.tanh(x @ p["w"]), y).mean())(params)
        updates, state = optimiser.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    return params


def pendulum(length: Any, state: Any) -> Any:
    angle, speed = state
    return speed, -9.81 / length * jnp.sin(angle)


def runge_kutta(slope: Any, state: Any, h: float) -> Any:
    add = lambda factor, other: jax.tree.map(lambda one, two: one + factor * two, state, other)
    k1 = slope(state)
    k2 = slope(add(h / 2, k1))
    k3 = slope(add(h / 2, k2))
    k4 = slope(add(h, k3))
    return jax.tree.map(lambda y, a, b, c, d: y + h / 6 * (a + 2 * b + 2 * c + d), state, k1, k2, k3, k4)


@program({"length": 1.2, "angle": 0.5})
def ode_by_fori_loop(params: Any) -> Any:
    step = lambda _, state: runge_kutta(partial(pendulum, params["length"]), state, 0.01)
    return lax.fori_loop(0, 50, step, (params["angle"], jnp.zeros(())))


@program(tree(9, w1=(2, 8), w2=(8, 2)), normal(1, 3, 2))
def neural_ode_by_scan(params: Any, y: Any) -> Any:
    slope = lambda y: jnp.tanh(y @ params["w1"]) @ params["w2"]

    def step(y: Any, _: Any) -> Any:
        y = runge_kutta(slope, y, 0.1)
        return y, y

    return lax.scan(step, y, None, length=10)[1]


@program(3.0, max_steps=500)
def adaptive_ode(rate: Any) -> Any:
    def goes_on(carry: Any) -> Any:
        return carry[0] < 1.0

    def heun(carry: Any) -> Any:
        t, y, h = carry
        h = jnp.minimum(h, 1.0 - t)
        euler = y - h * rate * y
        after = y - h / 2 * rate * (y + euler)
        error = jnp.abs(after - euler) / 1e-3
        fits = error <= 1
        longer = lax.stop_gradient(jnp.clip(0.9 / jnp.sqrt(error + 1e-9), 0.2, 5.0))
        return jnp.where(fits, t + h, t), jnp.where(fits, after, y), h * longer

    return lax.while_loop(goes_on, heun, (0.0, 1.0, 0.1))[1]


@program({"length": 0.7, "noise": 0.3, "scale": 1.1}, normal(1, 6, 2), normal(2, 6))
def gaussian_process(params: Any, x: Any, y: Any) -> Any:
    distances = jnp.sum((x[:, None] - x[None]) ** 2, -1)
    covariance = params["scale"] * jnp.exp(-distances / (2 * params["length"] ** 2)) + params["noise"] * jnp.eye(6)
    factor = jnp.linalg.cholesky(covariance)
    weights = jax.scipy.linalg.cho_solve((factor, True), y)
    return 0.5 * y @ weights + jnp.log(jnp.diag(factor)).sum() + 3 * jnp.log(2 * jnp.pi)


@program({"mean": normal(1, 3), "covariance": positive(2, 3)}, normal(3, 4, 3))
def multivariate_normal(params: Any, x: Any) -> Any:
    return jax.scipy.stats.multivariate_normal.logpdf(x, params["mean"], params["covariance"])


@program({"a": positive(1, 4), "b": normal(2, 4)}, normal(3, 4, 2))
def linear_algebra(params: Any, c: Any) -> Any:
    a = params["a"]
    return {
        "vector": jnp.linalg.solve(a, params["b"]),
        "matrix": jnp.linalg.solve(a.T, c),
        "inverse": jnp.linalg.inv(a),
        "logarithm": jnp.linalg.slogdet(a)[1],
        "small": jnp.linalg.det(a[:3, :3] / 4),
        "large": jnp.linalg.det(a / 4),
        "triangular": jax.scipy.linalg.solve_triangular(a, params["b"], lower=True, trans=1),
        "unit": jax.scipy.linalg.solve_triangular(a / 4, c, unit_diagonal=True),
        "batched": jax.vmap(jnp.linalg.solve)(jnp.stack([a, a + 1]), jnp.stack([c, 2 * c])),
        "vectors": jax.vmap(jnp.linalg.solve, (None, 0))(a, jnp.stack([params["b"], params["b"] ** 2])),
        "gradient": jax.grad(lambda a: jnp.linalg.solve(a, params["b"]).sum())(a),
    }


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f: Any, a: Any, x: Any) -> Any:
    def moves(carry: Any) -> Any:
        before, now = carry
        return jnp.max(jnp.abs(now - before)) > 1e-13

    return lax.while_loop(moves, lambda carry: (carry[1], f(a, carry[1])), (x, f(a, x)))[1]


def _fixed_point_forward(f: Any, a: Any, x: Any) -> Any:
    point = fixed_point(f, a, x)
    return point, (a, point)


def _fixed_point_backward(f: Any, residuals: Any, g: Any) -> Any:
    a, point = residuals
    _, pull = jax.vjp(f, a, point)
    solution = fixed_point(lambda g, u: g + pull(u)[1], g, g)
    return pull(solution)[0], jnp.zeros_like(point)


fixed_point.defvjp(_fixed_point_forward, _fixed_point_backward)


@program({"w": normal(1, 3, 3, scale=0.2), "b": normal(2, 3)}, max_steps=200)
def fixed_point_with_its_own_rule(params: Any) -> Any:
    step = lambda p, x: jnp.tanh(p["w"] @ x + p["b"])
    return fixed_point(step, params, jnp.zeros(3))


@program(tree(1, loc=(3,), log_scale=(3,)), jax.random.PRNGKey(3))
def reparametrised_samples(params: Any, key: Any) -> Any:
    noise = jax.random.normal(key, (4, 3))
    x = params["loc"] + jnp.exp(params["log_scale"]) * noise
    return jnp.mean(jnp.sum(x**4, -1))


@program(tree(2, w=(3, 3), rate=(3,)), 5, normal(3, 6, 3))
def dropout_and_other_noise(params: Any, seed: Any, x: Any) -> Any:
    a, b, c, d = jax.random.split(jax.random.key(seed), 4)
    kept = jax.random.bernoulli(a, 0.75, x.shape)
    x = jnp.where(kept, x / 0.75, 0.0) @ params["w"]
    waiting = jax.random.exponential(b, (3,)) * jnp.exp(params["rate"])
    soft = jax.nn.softmax((x + jax.random.gumbel(c, x.shape)) / 0.5)
    narrow = jax.random.uniform(jax.random.fold_in(d, 7), (6, 3), minval=-1.0, maxval=2.0)
    return soft * waiting, narrow * x, jax.random.categorical(a, x)


@program(tree(3, step=()), jax.random.PRNGKey(1))
def langevin_with_a_key_a_step(params: Any, key: Any) -> Any:
    def move(x: Any, key: Any) -> Any:
        slope = jax.grad(lambda x: jnp.sum((x - 3.0) ** 2))(x)
        return x - 0.1 * jnp.exp(params["step"]) * slope + 0.1 * jax.random.normal(key, x.shape), x.sum()

    return lax.scan(move, jnp.zeros(5), jax.random.split(jax.random.wrap_key_data(key), 8))


@program(tree(4, w=(3, 2)), jax.random.PRNGKey(2))
def keys_under_vmap(params: Any, key: Any) -> Any:
    keys = jax.random.split(jax.random.wrap_key_data(key), 4)
    return jax.vmap(lambda key: jnp.tanh(jax.random.normal(key, (3,)) @ params["w"]))(keys)


@program(tree(5, w=(3, 3)), normal(1, 4, 3))
def vmap_jvp_and_grad_inside(params: Any, x: Any) -> Any:
    energy = lambda x: jnp.sum(jnp.log1p(jnp.exp(params["w"] @ x)))
    force = jax.vmap(jax.grad(energy))(x)
    turned = jax.vmap(lambda x: jax.jvp(jax.grad(energy), (x,), (jnp.ones(3),))[1])(x)
    return force, turned, jax.vmap(jax.hessian(energy))(x[:2])


@program(tree(6, w1=(1, 6), b=(6,), w2=(6, 1)), normal(2, 5))
def physics_informed(params: Any, points: Any) -> Any:
    u = lambda t: (jnp.tanh(t[None] @ params["w1"] + params["b"]) @ params["w2"])[0]
    residual = jax.vmap(lambda t: jax.grad(jax.grad(u))(t) + u(t))(points)
    return jnp.mean(residual**2) + (u(jnp.zeros(())) - 1.0) ** 2


@program(tree(7, x=(4,)))
def branches(params: Any) -> Any:
    x = params["x"]
    one = lax.cond(x.sum() > 0, lambda x: jnp.sin(x) * 2, lambda x: x**3, x)
    several = [jnp.cos, jnp.exp, lambda x: x * x, jnp.tanh]
    chosen = [lax.switch(i, several, x) for i in (jnp.argmax(x), jnp.argmin(x), 17)]
    return one, chosen, lax.select(x > 0, x, -x * x)


@program(tree(8, w=(3, 3)), normal(1, 5, 3))
def lax_map(params: Any, x: Any) -> Any:
    return lax.map(lambda row: jnp.sort(params["w"] @ row), x)


@program(tree(9, a=(7, 2), b=(7, 2)))
def associative_scan(params: Any) -> Any:
    combine = lambda one, other: (one[0] * other[0], other[0] * one[1] + other[1])
    return lax.associative_scan(combine, (jax.nn.sigmoid(params["a"]), params["b"]))


@program(tree(10, w1=(3, 5), w2=(5, 3)), normal(1, 4, 3))
def rematerialised(params: Any, x: Any) -> Any:
    @jax.checkpoint
    def block(x: Any) -> Any:
        return x + jnp.sin(jnp.tanh(x @ params["w1"]) @ params["w2"])

    return block(block(x))


@program(tree(11, x=(3, 4)))
def accumulated_and_sorted(params: Any) -> Any:
    x = params["x"]
    return {
        "sum": jnp.cumsum(x, 0),
        "product": jnp.cumprod(x, 1),
        "greatest": lax.cummax(x, 1),
        "least": lax.cummin(x, 0, reverse=True),
        "logarithm": lax.cumlogsumexp(x, 1),
        "sorted": jnp.sort(x, 1),
        "best": lax.top_k(x, 2)[0],
        "median": jnp.median(x, 1),
        "quantile": jnp.quantile(x, 0.3, axis=0),
        "by key": x[:, jnp.argsort(x[0])],
        "lexicographic": lax.sort((jnp.round(x), x), num_keys=2)[1],
    }


@program(tree(12, x=(4, 5)), np.array([3, 0, 3]), np.array([[1, 0], [2, 2]]), 2)
def indexed_and_updated(params: Any, rows: Any, pairs: Any, start: Any) -> Any:
    x = params["x"]
    return {
        "rows": x[rows],
        "columns": x[:, rows],
        "pairs": x[pairs[:, 0], pairs[:, 1]],
        "negative": x[-1, ::-2],
        "mask": jnp.where(x > 0, x, 0.0)[1:, 2:4],
        "dynamic": lax.dynamic_slice(x, (start, 1), (2, 3)),
        "moved": lax.dynamic_slice(x, (9, 9), (2, 3)),
        "set": x.at[rows].set(x[:3] * 2),
        "set here": x.at[[1, 1, 2], [0, 0, 3]].set(x[0, :3]),
        "added": x.at[rows, 1].add(x[0, :3]),
        "beyond": x.at[np.array([1, 7])].add(1.0),
        "multiplied": x.at[pairs[:, 0]].multiply(x[:2], unique_indices=True),
        "filled": jnp.take(x, np.array([0, 9]), axis=0, mode="fill", fill_value=0.5),
        "clipped": jnp.take(x, rows + 2, axis=0, mode="clip"),
        "updated": lax.dynamic_update_slice(x, x[:2, :2] ** 2, (start, start)),
        "along": jnp.take_along_axis(x, jnp.argsort(x, 1)[:, :2], 1),
        "rolled": jnp.roll(x, (1, -2), (0, 1)),
        "repeated": jnp.repeat(x, 2, axis=0),
        "one hot": jax.nn.one_hot(rows, 5) @ x.T,
    }


@program(tree(13, x=(3, 4)))
def special_functions(params: Any) -> Any:
    x = params["x"]
    y = jnp.abs(x) + 0.5
    return {
        "gamma": jax.scipy.special.gammaln(y) + jax.scipy.special.digamma(y),
        "error": jax.scipy.special.erf(x) + jax.scipy.special.erfc(x) ** 2 + jax.scipy.special.erfinv(x / 4),
        "beta": jax.scipy.special.betaln(y, y + 1),
        "entropy": jax.scipy.special.entr(y) + jax.scipy.special.xlogy(x, y) + jax.scipy.special.xlog1py(x, y),
        "normal": jax.scipy.special.ndtr(x) + jax.scipy.special.log_ndtr(x),
        "polygamma": jax.scipy.special.polygamma(1, y),
        "logsumexp": jax.scipy.special.logsumexp(x, axis=1, b=y),
        "hyperbolic": jnp.sinh(x) + jnp.cosh(x) + jnp.arcsinh(x) + jnp.arccosh(y + 1) + jnp.arctanh(x / 4),
        "angles": jnp.arctan2(x, y) + jnp.arcsin(x / 4) + jnp.arccos(x / 4) + jnp.arctan(x) + jnp.tan(x),
        "powers": y**x + jnp.cbrt(x) + jnp.exp2(x) + x**5 + y**-2 + jnp.power(y, 0.3) + jnp.hypot(x, y),
        "activations": jax.nn.selu(x) + jax.nn.celu(x) + jax.nn.mish(x) + jax.nn.hard_swish(x) + jax.nn.relu6(x),
        "rest": jnp.fmod(x, 0.3) + jnp.mod(x, 0.3) + jnp.clip(x, -0.2, 0.2) + jnp.logaddexp(x, y) + jnp.log2(y),
    }


@program(tree(14, x=(3, 4)))
def statistics(params: Any) -> Any:
    x = params["x"]
    return {
        "moments": (x.mean(0), x.var(1, ddof=1), x.std()),
        "extremes": (x.max(0), x.min(1), jnp.ptp(x), jnp.argmax(x, 1)),
        "products": (x.prod(1), jnp.cov(x), jnp.corrcoef(x)),
        "counts": (jnp.sum(x > 0, 0), jnp.any(x > 1), jnp.all(x > -9, 1)),
        "interpolated": jnp.interp(x[0], jnp.array([-1.0, 0.0, 1.0]), jnp.array([0.0, 2.0, 1.0])),
        "polynomial": jnp.polyval(x[0], x[1]),
        "distances": jnp.linalg.norm(x[:, None] - x[None] + 1, axis=-1),
    }


@program((normal(1, 2, 3, 4), normal(2, 2, 4, 3), normal(3, 4)), parameters=0)
def products(factors: Any) -> Any:
    a, b, c = factors
    return {
        "batched": a @ b,
        "vector": a @ c,
        "inner": jnp.vdot(c, c),
        "outer": jnp.outer(c, c),
        "tensor": jnp.tensordot(a, b, axes=((2, 0), (1, 0))),
        "kronecker": jnp.kron(a[0], b[0]),
        "several": jnp.einsum("bij,bjk,j->ik", a, b, c),
        "trace": jnp.trace(a[0] @ b[0]),
        "power": jnp.linalg.matrix_power(a[0] @ b[0], 3),
        "convolved": jnp.convolve(c, a[0, 0], mode="full"),
    }


@program(normal(1, 3), normal(2, 3), parameters=(0, 1))
def several_parameters(a: Any, b: Any) -> Any:
    return a * jnp.exp(b), (a, {"again": b, "both": (a @ b)})


@program(tree(15, x=(4, 6)), unroll=True)
def unrolled_scan(params: Any) -> Any:
    return lax.scan(lambda c, x: (jnp.sin(c) + x, c * x), jnp.zeros(6), params["x"], reverse=True)


@jax.custom_jvp
def smooth_step(x: Any, width: Any) -> Any:
    return jnp.where(x > 0, 1.0, 0.0) * width


@smooth_step.defjvp
def _smooth_step_along(primals: Any, tangents: Any) -> Any:
    x, width = primals
    y = smooth_step(x, width)
    soft = jax.nn.sigmoid(x / width)
    return y, soft * (1 - soft) * tangents[0] + y / width * tangents[1]


@program(tree(16, x=(4,)), 0.5)
def surrogate_gradient(params: Any, width: Any) -> Any:
    spikes = smooth_step(params["x"], width)
    return (
        spikes,
        jax.grad(lambda x: smooth_step(x, width).sum())(params["x"]),
        jax.vmap(smooth_step, (0, None))(params["x"], width * 2),
    )


@program(tree(17, x=(2, 7, 6)))
def pools(params: Any) -> Any:
    x = params["x"][..., None]
    window = {"window_dimensions": (1, 3, 2, 1), "window_strides": (1, 2, 2, 1)}
    return {
        "max": lax.reduce_window(x, -jnp.inf, lax.max, padding="SAME", **window),
        "min": lax.reduce_window(x, jnp.inf, lax.min, padding="VALID", **window),
        "sum": lax.reduce_window(x, 0.0, lax.add, padding="SAME", **window),
        "gaps": lax.reduce_window(
            lax.stop_gradient(x), -jnp.inf, lax.max, padding="VALID", window_dilation=(1, 2, 1, 1), **window
        ),
        "cube": lax.reduce_window(params["x"], -jnp.inf, lax.max, (2, 2, 2), (1, 2, 2), "SAME"),
        "gradient": jax.grad(lambda y: (lax.reduce_window(y, -jnp.inf, lax.max, padding="SAME", **window) ** 3).sum())(
            x
        ),
    }
