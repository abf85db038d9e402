"""Loops in one program: simulations, recurrent networks, a solver that chooses its steps, a sampler, long memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.workload import Array, Function, Maker, Question, Workload, normal, values_of

STEPS: Final = 1_000
MILLION: Final = 1_000_000
#: what a million steps may take: less than all of their carries would
MEMORY: Final = 16_000_000
#: adaptive steps at the most, the end of time, and the error that a step may have
MOST, END, TOLERANCE = 2_048, 20.0, 1.745e-4
DRAWS, CHAINS, LEAPFROGS = 500, 64, 10
#: of the sampler: its data, and how long a leap is
EXAMPLES, FEATURES, LEAP = 32, 4, 0.1
WITHOUT: Final = {"torch.compile": "would unroll the loop, and compile for minutes"}
Values = Sequence[Any]
Slope = Callable[[Any, Values, Values], Values]
Step = Callable[[Any, Values, Values, Values], tuple[Values, Values]]


def rk4(slope: Slope, h: float) -> Step:
    """A step of the classical Runge–Kutta method, for `slope(ops, consts, carries)`."""

    def step(ops: Any, consts: Values, ys: Values, entries: Values) -> tuple[Values, Values]:
        del entries

        def slope_at(ks: Values, by: float) -> Values:
            return slope(ops, consts, [y + k * by for y, k in zip(ys, ks, strict=True)])

        first = slope(ops, consts, ys)
        second = slope_at(first, h / 2)
        third = slope_at(second, h / 2)
        fourth = slope_at(third, h)
        every = zip(ys, first, second, third, fourth, strict=True)
        return [y + (a + d + (b + c) * 2.0) * (h / 6) for y, a, b, c, d in every], []

    return step


def hunters(ops: Any, consts: Values, carries: Values) -> Values:
    """Lotka's and Volterra's equations."""
    a, b, c, d = (ops.select(consts[0], index=i) for i in range(4))
    x, y = carries
    return [a * x - b * x * y, c * x * y - d * y]


def pair(length: int) -> Callable[..., Any]:
    """Prey and predators after so many steps."""

    def total(ops: Any, rates: Any, x: Any, y: Any) -> Any:
        (x, y), _ = ops.scan(_hunters_step(length), [rates], [x, y], length=length)
        return x + y

    return total


def pair_in_pieces(ops: Any, rates: Any, x: Any, y: Any) -> Any:
    """The same after a million steps, where a carry is kept every thousand."""

    def piece(ops: Any, consts: Values, carries: Values, entries: Values) -> tuple[Values, Values]:
        del entries
        return ops.scan(_hunters_step(MILLION), consts, carries, length=STEPS)  # type: ignore[no-any-return]

    (x, y), _ = ops.scan(ops.checkpoint(piece), [rates], [x, y], length=MILLION // STEPS)
    return x + y


def pair_once(ops: Any, rates: Any, x: Any, y: Any) -> Any:
    """One step, without a loop."""
    (x, y), _ = _hunters_step(STEPS)(ops, [rates], [x, y], [])
    return x + y


def _hunters_step(length: int) -> Step:
    return rk4(hunters, 10 / length)


def euler(ops: Any, rate: Any, y: Any) -> Any:
    """Exponential decay."""

    def step(ops: Any, consts: Values, carries: Values, entries: Values) -> tuple[Values, Values]:
        del ops, entries
        return [carries[0] + consts[0] * carries[0] * -0.001], []

    (y,), _ = ops.scan(step, [rate], [y], length=STEPS)
    return y


def network(ops: Any, *operands: Any) -> Any:
    """Examples that flow along a network of one hidden layer."""

    def slope(ops: Any, consts: Values, carries: Values) -> Values:
        w1, b1, w2, b2 = consts
        return [ops.tanh(carries[0] @ w1 + b1) @ w2 + b2]

    (y,), _ = ops.scan(rk4(slope, 1 / STEPS), operands[:4], operands[4:], length=STEPS)
    return ops.sum(ops.square(y))


def lstm(batch: int, hidden: int) -> Callable[..., Any]:
    """One layer over a sequence."""

    def step(ops: Any, consts: Values, carries: Values, entries: Values) -> tuple[Values, Values]:
        wx, wh, bias = consts
        h, c = carries
        z = entries[0] @ wx + h @ wh + bias
        i, f, g, o = (ops.slice(z, starts=[0, k * hidden], stops=[batch, (k + 1) * hidden]) for k in range(4))
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        return [h, c], [h]

    def loss(ops: Any, wx: Any, wh: Any, bias: Any, h: Any, c: Any, xs: Any) -> Any:
        _, (hs,) = ops.scan(step, [wx, wh, bias], [h, c], [xs])
        return ops.sum(ops.square(hs))

    return loss


def adaptive(loop: str) -> Callable[..., Any]:
    """A scalar that follows a sine, by Heun's method; how far Euler's is from it chooses the step."""

    def condition(ops: Any, consts: Values, carries: Values) -> Any:
        return ops.less(carries[0], consts[1])

    def step(ops: Any, consts: Values, carries: Values) -> Values:
        (rate, end, tolerance), (t, y, h) = consts, carries

        def slope(t: Any, y: Any) -> Any:
            return rate * (ops.sin(t) - y)

        h = ops.minimum(h, end - t)
        first = slope(t, y)
        second = slope(t + h, y + h * first)
        error = ops.abs(h * (second - first)) * 0.5 + 1e-12
        keeps = ops.less(error, tolerance)
        moved = [ops.where(keeps, new, old) for new, old in ((t + h, t), (y + h * (first + second) * 0.5, y))]
        return [*moved, h * ops.clamp(ops.sqrt(tolerance / error) * 0.9, min=0.2, max=5.0)]

    def last(ops: Any, rate: Any, y: Any, *rest: Any) -> Any:
        t, h, end, tolerance = rest
        return getattr(ops, loop)(condition, step, [rate, end, tolerance], [t, y, h], MOST)[1]

    return last


def sampler(ops: Any, seed: Any, examples: Any, position: Any) -> Any:
    """The mean of each chain's draws from the posterior of a logistic regression, by Hamiltonian dynamics."""

    def draw(ops: Any, consts: Values, carries: Values, entries: Values) -> tuple[Values, Values]:
        (examples,), (old,) = consts, carries
        keys = ops.random_split(entries[0], k=2)
        push = ops.random_normal(ops.select(keys, index=0), shape=[CHAINS, FEATURES], dtype="float64")
        new, pull = leapfrogs(ops, examples, old, push)
        chance = ops.random_uniform(ops.select(keys, index=1), shape=[CHAINS, 1], dtype="float64")
        gained = energy(ops, examples, old, push) - energy(ops, examples, new, pull)
        kept = ops.where(ops.less(ops.log(chance), gained), new, old)
        return [kept], [kept]

    keys = ops.random_split(ops.random_key(seed), k=DRAWS)
    _, (drawn,) = ops.scan(draw, [examples], [position], [keys])
    return ops.mean(drawn, axes=[0])


def energy(ops: Any, examples: Any, position: Any, push: Any) -> Any:
    """Potential and kinetic, of each chain. An example is its features, with the sign of its class."""
    wrong = ops.log(ops.exp(-(position @ ops.transpose(examples, axes=[1, 0]))) + 1.0)
    squares = ops.square(position) + ops.square(push)
    return ops.sum(wrong, axes=[1], keepdims=True) + ops.sum(squares, axes=[1], keepdims=True) * 0.5


def force(ops: Any, examples: Any, position: Any) -> Any:
    """What pulls towards less potential."""
    return ops.sigmoid(-(position @ ops.transpose(examples, axes=[1, 0]))) @ examples - position


def leapfrogs(ops: Any, examples: Any, position: Any, push: Any) -> tuple[Any, Any]:
    """Where these dynamics lead, and how fast it is there."""

    def step(ops: Any, consts: Values, carries: Values, entries: Values) -> tuple[Values, Values]:
        del entries
        position, push, pull = carries
        half = push + pull * (LEAP / 2)
        position = position + half * LEAP
        pull = force(ops, consts[0], position)
        return [position, half + pull * (LEAP / 2), pull], []

    carries = [position, push, force(ops, examples, position)]
    (position, push, _), _ = ops.scan(step, [examples], carries, length=LEAPFROGS)
    return position, push


def pair_of(length: int) -> Workload:
    """Two scalars, over so many steps."""
    title = f"RK4 of two scalars, {length:,} steps"
    return _workload("rk4-pair", title, pair(length), [np.array([1.5, 1.0, 1.0, 3.0]), *_scalars(1.0, 1.2)])


def million() -> Workload:
    """A loop in pieces, on either side."""
    loops_of_python = {"torch": "takes minutes"}
    work = replace(pair_of(MILLION), name="rk4-million", memory=MEMORY, without=WITHOUT | loops_of_python)
    return replace(work, title=f"{work.title}, a carry kept every 1,000", written={"jax": pair_in_pieces})


def euler_of_one() -> Workload:
    """One scalar."""
    return _workload("euler", "Euler of one scalar, 1,000 steps", euler, _scalars(1.0, 2.0))


def network_flow() -> Workload:
    """64 examples of two numbers, 32 hidden units."""
    scales = {(2, 32): 0.5, (32,): 0.1, (32, 2): 0.2, (2,): 0.1}
    parameters = [normal(i, *shape, scale=scales[shape], dtype="float64") for i, shape in enumerate(scales)]
    data = [normal(4, 64, 2, dtype="float64")]
    return _workload("rk4-network", "RK4 of a 2-32-2 network, batch 64, 1,000 steps", network, parameters, data)


def lstm_of(inputs: int, hidden: int, batch: int) -> Workload:
    """A layer in float32, over 1,000 steps."""
    parameters = [normal(0, inputs, 4 * hidden, scale=0.1), normal(1, hidden, 4 * hidden, scale=0.1)]
    parameters.append(np.zeros(4 * hidden, "float32"))
    start = np.zeros((batch, hidden), "float32")
    data = [start, start, normal(2, STEPS, batch, inputs)]
    title = f"LSTM {inputs}-{hidden}, batch {batch}, 1,000 steps, float32"
    return _workload(f"lstm-{hidden}", title, lstm(batch, hidden), parameters, data)


def adaptive_steps() -> Workload:
    """For gradients JAX needs a scan of as many steps as there may be."""
    title = "one scalar by adaptive steps, at most 2,048, of which 825 run"
    data = _scalars(0.0, 0.1, END, TOLERANCE)
    work = _workload("adaptive", title, adaptive("while_loop"), _scalars(1.0, 2.0), data)
    return replace(work, written={"jax": adaptive("bounded_loop")})


def chains() -> Workload:
    """All draws of all chains in one program."""
    classes = np.sign(normal(1, EXAMPLES, 1, dtype="float64"))
    data = [np.array(7), classes * normal(0, EXAMPLES, FEATURES, dtype="float64")]
    title = f"{CHAINS} chains of HMC, {DRAWS} draws of {LEAPFROGS} leapfrogs"
    start = [np.zeros((CHAINS, FEATURES))]
    return replace(_workload("hmc", title, sampler, [], [*data, *start]), question=Question.VALUES)


def _scalars(*numbers: float) -> list[Array]:
    return [np.array(number) for number in numbers]


def _workload(
    name: str, title: str, function: Function, parameters: list[Array], data: Sequence[Array] = ()
) -> Workload:
    return Workload(name, title, function, parameters, list(data), without=WITHOUT)


#: value and all gradients, and then values alone
BOTH: Final[dict[str, Maker]] = {
    "rk4-pair": partial(pair_of, STEPS),
    "euler": euler_of_one,
    "rk4-network": network_flow,
    "lstm-64": partial(lstm_of, 64, 64, 16),
    "lstm-32": partial(lstm_of, 16, 32, 4),
    "adaptive": adaptive_steps,
}
LOOPS: Final[dict[str, Maker]] = {
    name + suffix: made
    for name, make in BOTH.items()
    for suffix, made in (("", make), ("-values", partial(values_of, make)))
} | {"rk4-million": million, "hmc": chains}

#: what is planned to see that a plan does not know the number of steps, and the gradient of a body alone
PLANNED: Final[dict[str, Maker]] = {
    **{f"loop-{length}": partial(pair_of, length) for length in (10, MILLION)},
    "loop-body": lambda: replace(pair_of(1), function=pair_once),
}
