"""Supports of cotangents: unselected elements do not count, and a zero by value is no selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from tests.engine.ops.matrices import evaluate

#: functions of one number, with a point where the derivative is finite, and one where it is infinite or NaN
SINGULAR: dict[str, tuple[Callable[[Any], Value], float, float]] = {
    "sqrt": (lambda x: x.sqrt(), 0.5, 0.0),
    "sqrt of a negative number": (lambda x: x.sqrt(), 0.5, -1.0),
    "log": (lambda x: x.log(), 0.5, 0.0),
    "log of log": (lambda x: x.log().log(), 2.5, 1.0),
    "acos": (lambda x: x.acos(), 0.5, 1.0),
    "reciprocal": (lambda x: x.reciprocal(), 0.5, 0.0),
    "rsqrt": (lambda x: x.rsqrt(), 0.5, 0.0),
    "power": (lambda x: x.pow_scalar(exponent=0.25), 0.5, 0.0),
    "log1p": (lambda x: x.log1p(), 0.5, -1.0),
    "atanh": (lambda x: x.atanh(), 0.5, 1.0),
    "erfinv": (lambda x: x.erfinv(), 0.5, 1.0),
    "exp": (lambda x: x.exp(), 0.5, 800.0),
    "division": (lambda x: 1.0 / x, 0.5, 0.0),
    "x times 1/x": (lambda x: x * x.reciprocal(), 0.5, 0.0),
    "NaN": (lambda x: x.sin(), 0.5, np.nan),
    "infinity": (lambda x: x.sin(), 0.5, np.inf),
    "tanh at NaN": (lambda x: x.tanh(), 0.5, np.nan),
    "pow of two": (lambda x: x.pow(x), 0.5, 0.0),
}


def _constant(x: Value, elements: Any) -> Value:
    return x.builder.constant(np.array(elements))


#: ways of selecting the first of two elements, of y = f(x)
WAYS: dict[str, Callable[[Value, Value], Value]] = {
    "where": lambda x, y: _constant(x, [True, False]).where(y, 0.0),
    "where, then square": lambda x, y: _constant(x, [True, False]).where(y, 0.0).square(),
    "where of a condition on x": lambda x, y: x.equal(x.slice(starts=[0], stops=[1])).where(y, 0.0),
    "slice": lambda x, y: y.slice(starts=[0], stops=[1]),
    "slice of a sum": lambda x, y: (y + x).slice(starts=[0], stops=[1]),
    "slice of a row": lambda x, y: y.reshape(shape=(1, 2)).transpose(axes=(1, 0)).slice(starts=[0, 0], stops=[1, 1]),
    "slice at": lambda x, y: y.slice_at(_constant(x, [0]), sizes=[1]),
    "update of a slice": lambda x, y: y.update_slice(x.slice(starts=[0], stops=[1]), starts=[1]),
    "flip and slice": lambda x, y: y.flip(axes=[0]).slice(starts=[1], stops=[2]),
    "padding": lambda x, y: y.slice(starts=[0], stops=[1]).pad(pad_width=[1, 1]),
    "part of a concatenation": lambda x, y: y.cat(x, axis=0).slice(starts=[0], stops=[1]),
    "gather": lambda x, y: y.gather(_constant(x, [0]), axis=0),
    "gather twice": lambda x, y: y.gather(_constant(x, [0, 0]), axis=0),
    "take along": lambda x, y: y.take_along(_constant(x, [0]), axis=0),
    "split": lambda x, y: y.split(sizes=[1, 1], axis=0).output(0),
    "compress": lambda x, y: y.gather(_constant(x, [True, False]).nonzero(k=1).output(0).reshape(shape=(1,)), axis=0),
    "triangle": lambda x, y: y.reshape(shape=(1, 2)).tril(),
    "diagonal": lambda x, y: y.reshape(shape=(1, 2)).tril().sum(axes=(1,)),
    "segment sum": lambda x, y: y.segment_sum(_constant(x, [0, 1]), segments=2).slice(starts=[0], stops=[1]),
    "mask of bools": lambda x, y: y * _constant(x, [True, False]),
    "mask of numbers from bools": lambda x, y: _constant(x, [True, False]).cast(dtype=np.dtype("float64")) * y,
    "sum of the selected": lambda x, y: _constant(x, [True, False]).where(y, 0.0).sum(axes=(0,), keepdims=True),
    "row of the log of a sum": lambda x, y: y.reshape(shape=(2, 1)).logsumexp(axes=(1,)).slice(starts=[0], stops=[1]),
    "row of a norm": lambda x, y: y.reshape(shape=(2, 1)).norm(axes=(1,)).slice(starts=[0], stops=[1]),
    "row of a product": lambda x, y: y.reshape(shape=(2, 1)).prod(axes=(1,)).slice(starts=[0], stops=[1]),
    "row of a softmax": lambda x, y: (y.reshape(shape=(2, 1)).softmax(axis=1) * y.reshape(shape=(2, 1))).slice(
        starts=[0, 0], stops=[1, 1]
    ),
    "sum along the way": lambda x, y: y.cumsum(axis=0).slice(starts=[0], stops=[1]),
}
#: such ways that depend on which element is larger: of y, made small or large at the singular point
EXTREMES: dict[str, Callable[[Value], Value]] = {
    "relu": lambda y: y.relu(),
    "maximum": lambda y: y.maximum(-1.0),
    "clamp": lambda y: y.clamp(min=-1.0),
    "max": lambda y: y.max(axes=(0,)),
    "topk": lambda y: y.topk(k=1).output(0),
    "max_pool1d": lambda y: y.reshape(shape=(1, 1, 2)).max_pool1d(kernel_size=[2]),
    "cummax": lambda y: y.flip(axes=[0]).cummax(axis=0).slice(starts=[1], stops=[2]) + y.max(axes=(0,)),
    "segment_max": lambda y: y.segment_max(_constant(y, [0, 0]), segments=1),
}


def _first(y: Value, x: Value) -> Value:
    (g,) = vjp(y.builder, [(y, y.full_like(1.0))], [x])
    assert g is not None
    return g


def _second(y: Value, x: Value) -> Value:
    g = _first(y, x)
    z = (g * g.builder.constant(np.arange(1.0, 1.0 + g.shape[0]))).sum()
    return _first(z, x)


def _forward(y: Value, x: Value) -> Value:
    (t,) = jvp(y.builder, [y], [(x, x.full_like(1.0))])
    assert t is not None
    return t


def _run(derivative: Callable[[Value, Value], Value], write: Callable[[Value], Value], at: Sequence[float]) -> Any:
    with np.errstate(all="ignore"):
        return evaluate(lambda x: [derivative(write(x), x)], np.array(at))[0]


@pytest.mark.parametrize("way", WAYS)
def test_unselected_elements_do_not_count(way: str) -> None:
    """The derivative with respect to the selected element is that of the function of this element alone."""
    for name, (function, good, singular) in SINGULAR.items():
        write = lambda x, function=function: WAYS[way](x, function(x)).sum()
        for derivative in (_first, _second):
            alone, both = (_run(derivative, write, [good, at]) for at in (good, singular))
            assert both[0] == pytest.approx(alone[0], rel=1e-12), (name, derivative)
            assert both[1] == 0.0 or "sum" in way or "update" in way, (name, derivative)
        assert np.isfinite(_run(_forward, write, [good, singular])).all(), name


@pytest.mark.parametrize("way", EXTREMES)
def test_elements_below_the_largest_do_not_count(way: str) -> None:
    for name, (function, good, singular) in {
        "log": (lambda x: x.log(), 1.5, 0.0),
        "negative reciprocal": (lambda x: -((x - 1.0).square().reciprocal()), 3.0, 1.0),
        "asin": (lambda x: x.asin() - 1.6 * x.equal(-1.0), 0.5, -1.0),
    }.items():
        write = lambda x, function=function: EXTREMES[way](function(x) + 1.0).sum()
        for derivative in (_first, _second):
            gradient = _run(derivative, write, [good, singular])
            assert np.isfinite(gradient).all(), (name, derivative)
            assert gradient[1] == 0.0, (name, derivative)


#: chains whose cotangent is zero by value beside an infinite derivative, with a point; none has the derivative 0
CHAINS: dict[str, tuple[Callable[[Any], Value], float]] = {
    "square of sqrt": (lambda x: x.sqrt().square(), 0.0),
    "sqrt times sqrt": (lambda x: x.sqrt() * x.sqrt(), 0.0),
    "exp of log": (lambda x: x.log().exp(), 0.0),
    "cos of acos": (lambda x: x.acos().cos(), 1.0),
    "tanh of atanh": (lambda x: x.atanh().tanh(), 1.0),
    "cosh of acosh": (lambda x: x.acosh().cosh(), 1.0),
    "sigmoid of logit": (lambda x: (x / (1 - x)).log().sigmoid(), 0.0),
    "logsumexp of log": (lambda x: x.log().logsumexp(axes=(0,)), 0.0),
}


@pytest.mark.parametrize("behind", ["nothing", "where", "slice", "clamp", "mask", "gather"])
@pytest.mark.parametrize("chain", CHAINS)
def test_zero_by_value_is_no_selection(chain: str, behind: str) -> None:
    """The derivative may be NaN, or right, but it is not 0."""
    function, at = CHAINS[chain]
    select = {
        "nothing": lambda x, y: y,
        "where": lambda x, y: (x > -2.0).where(y, 0.0),
        "slice": lambda x, y: y.reshape(shape=(1,)).slice(starts=[0], stops=[1]),
        "clamp": lambda x, y: y.clamp(max=10.0),
        "mask": lambda x, y: y * (x > -2.0),
        "gather": lambda x, y: y.reshape(shape=(1,)).gather(_constant(x, [0]), axis=0),
    }[behind]
    gradient = _run(_first, lambda x: select(x, function(x)).sum(), [at])
    assert gradient[0] != 0.0


def test_cotangents_that_meet_have_the_union_of_their_supports() -> None:
    def write(x: Value) -> Value:
        y = x.sqrt()
        return y.slice(starts=[0], stops=[1]).sum() + y.slice(starts=[1], stops=[2]).sum()

    np.testing.assert_array_equal(_run(_first, write, [4.0, 1.0, 0.0]), [0.25, 0.5, 0.0])
    gradient = _run(_first, lambda x: write(x) + 0.0 * x.sqrt().sum(), [4.0, 1.0, 0.0])
    assert np.isnan(gradient[2]), "everything was selected, too"


def test_graph_without_selections_is_the_same_as_before() -> None:
    def write(x: Value) -> Sequence[Value]:
        y = (x.sin() * x.exp()).tanh().sum()
        before = len(x.builder.nodes)
        gradient = _first(y, x)
        assert not {"where", "not_equal"} & {node.op.name for node in x.builder.nodes[before:]}
        return [gradient]

    evaluate(write, np.array([0.5]))
