"""Certificates of graphs that run functions: a loop as one node, or by its first, middle and last steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine import Builder, Compiler, Gradients, Limits, Value, Values, certify, registry
from engine.analysis.certificate import Certificate
from engine.analysis.point import Point
from engine.autodiff.bodies import BackwardBody
from engine.ir.graph import ancestors
from engine.ir.program import Body
from engine.ir.run_context import NO_DEADLINE
from tests.engine.looping import EXECUTOR, Write, Writer, Written, random, run, written
from tests.engine.printers import COMPILED

LIMITS = Limits()


def certificate(write: Write, *arrays: Any, wrt: Sequence[int] | None = None) -> Certificate:
    asked = written(write, *arrays)
    call = Gradients.of_program(asked.program, asked.total, wrt)
    return certify(EXECUTOR, asked.program, asked.feeds, call, 4, 1e-6, LIMITS)


def turn(g: Writer, k: int, y: int) -> list[int]:
    """y + sin(k y) / 10."""
    return [g.add(y, g.mul_scalar(g.sin(g.mul(k, y)), scalar=0.1))]


def turn_and_square(g: Writer, k: int, y: int) -> list[int]:
    (new,) = turn(g, k, y)
    return [new, g.square(new)]


def recurrent(g: Writer, k: int, h: int, x: int) -> list[int]:
    return [g.tanh(g.add(g.mul(k, h), x)), h]


def cosine(g: Writer, k: int, x: int) -> list[int]:
    return [g.cos(g.mul(k, x))]


def below(g: Writer, _: int, y: int) -> list[int]:
    return [g.less(y, g.number(1.5))]


def exponential(g: Writer, *operands: int) -> list[int]:
    return [g.exp(operands[-1])]


def derivative(factor: float) -> Write:
    """Derivative of the exponential, times a factor."""
    return lambda g, x, y, arrived: [g.mul_scalar(g.mul(y, arrived), scalar=factor)]


def with_custom_derivative(factor: float) -> Write:
    """Exponential of sin x, with a custom derivative."""
    return lambda g, *operands: g.call(g.sin(operands[-1]), body=exponential, derivative=derivative(factor))


def flagged(then: Write, otherwise: Write) -> Write:
    return lambda g, x: g.cond(g.number(True, "bool"), x, then=then, otherwise=otherwise)


WRONG = 1.01
#: programs whose custom derivative is scaled by a factor
CUSTOM_DERIVATIVES: dict[str, Any] = {
    "call": lambda factor: lambda g, x: g.call(x, body=exponential, derivative=derivative(factor)),
    "scan": lambda factor: lambda g, x: g.scan(x, body=with_custom_derivative(factor), carries=1, length=5),
    "long scan": lambda factor: (
        lambda g, x: g.scan(x, body=lambda g, x: 2 * list(with_custom_derivative(factor)(g, x)), carries=1, length=50)
    ),
    "while": lambda factor: (
        lambda g, x: g.while_(
            x,
            condition=lambda g, x: [g.less(x, g.number(2.5))],
            body=with_custom_derivative(factor),
            carries=1,
            max_steps=5,
        )[:1]
    ),
    "then": lambda factor: flagged(with_custom_derivative(factor), exponential),
    "otherwise": lambda factor: (
        lambda g, x: g.cond(g.number(False, "bool"), x, then=exponential, otherwise=with_custom_derivative(factor))
    ),
    "map": lambda factor: lambda g, x: g.map(g.stack(x, x, axis=0), body=with_custom_derivative(factor), sequences=1),
    "within": lambda factor: (
        lambda g, x: g.scan(
            x,
            body=lambda g, x: g.scan(x, body=with_custom_derivative(factor), carries=1, length=2),
            carries=1,
            length=3,
        )
    ),
}


@pytest.mark.parametrize("case", CUSTOM_DERIVATIVES)
def test_custom_derivative_is_compared_with_differences(case: str) -> None:
    right, wrong = (certificate(CUSTOM_DERIVATIVES[case](factor), 0.9) for factor in (1.0, WRONG))
    assert right.passed, right
    assert not wrong.uncertified
    assert wrong.errors[0][1] > 1e-3


#: programs that pass by differences of the whole loop
PASSING: dict[str, tuple[Write, list[Any]]] = {
    "scan": (lambda g, k, y: g.scan(k, y, body=turn_and_square, carries=1, length=10), [0.7, 1.1]),
    "of no step": (lambda g, k, y: [*g.scan(k, y, body=turn, carries=1, length=0), k], [0.7, 1.1]),
    "sequences": (
        lambda g, k, x: g.scan(k, g.sum(x), x, body=recurrent, carries=1, sequences=1, reverse=True),
        [0.7, random(7)],
    ),
    "while": (lambda g, k, y: g.while_(k, y, condition=below, body=turn, carries=1, max_steps=50)[:1], [0.7, 1.1]),
    "cond": (lambda g, k, y: g.cond(g.less(y, g.number(0.0)), k, y, then=turn, otherwise=cosine), [0.7, 1.1]),
    "map": (lambda g, k, x: g.map(k, x, body=cosine, sequences=1, at_once=2), [0.7, random(7)]),
    "fixed_point": (
        lambda g, k: g.fixed_point(k, g.number(1.0), body=cosine, carries=1, tolerance=1e-12, max_steps=500)[:1],
        [0.7],
    ),
    "recomputed": (lambda g, k, y: g.call(k, y, body=turn, recompute=True), [0.7, 1.1]),
}


@pytest.mark.parametrize("case", PASSING)
def test_ops_that_run_functions_pass(case: str) -> None:
    write, arrays = PASSING[case]
    report = certificate(write, *arrays)
    assert report.passed, report


#: programs that also read results without derivatives
FLAGGED: dict[str, tuple[Write, list[Any]]] = {
    "finished": (
        lambda g, k, y: _with_flag(g, *g.while_(k, y, condition=below, body=turn, carries=1, max_steps=50)[::2]),
        [0.7, 1.1],
    ),
    "a branch": (
        lambda g, k, y: _with_flag(g, *g.cond(g.number(True, "bool"), k, y, then=turn_or_not, otherwise=turn_or_not)),
        [0.7, 1.1],
    ),
}


def turn_or_not(g: Writer, k: int, y: int) -> list[int]:
    return [*turn(g, k, y), *below(g, k, y)]


def _with_flag(g: Writer, y: int, flag: int) -> list[int]:
    return [g.mul(y, g.cast(flag, dtype="float64"))]


@pytest.mark.parametrize("case", FLAGGED)
def test_unchanged_flag_passes(case: str) -> None:
    write, arrays = FLAGGED[case]
    report = certificate(write, *arrays)
    assert report.passed, report


def test_changing_flag_is_an_integer_path() -> None:
    def write(g: Writer, x: int) -> list[int]:
        flag = g.cond(g.number(True, "bool"), x, then=itself_and_sign, otherwise=itself_and_sign)
        return _with_flag(g, *flag)

    def itself_and_sign(g: Writer, x: int) -> list[int]:
        return [x, g.less(x, g.number(1.0))]

    (report,) = certificate(write, 1.0).uncertified
    assert report.reason == "integer_path"


# ---------------------------------------------------------------- certification by steps


def logistic(g: Writer, r: int, x: int) -> list[int]:
    """r x (1 − x): after 60 steps differences no longer show the derivative."""
    return [g.mul(g.mul(r, x), g.add_scalar(g.neg(x), scalar=1.0))]


def blind(g: Writer, r: int, x: int) -> list[int]:
    """The same with a derivative that ignores r."""

    def backward(g: Writer, r: int, x: int, _: int, arrived: int) -> list[int]:
        slope = g.add_scalar(g.mul_scalar(x, scalar=-2.0), scalar=1.0)
        return [g.number(0.0), g.mul(arrived, g.mul(r, slope))]

    return list(g.call(r, x, body=logistic, derivative=backward))


def always(g: Writer, *_: int) -> list[int]:
    return [g.number(True, "bool")]


def chaotic(body: Write, *, reverse: bool = False) -> Write:
    return lambda g, r, x: g.scan(r, x, body=body, carries=1, length=60, reverse=reverse)


def logistic_with_entry(g: Writer, r: int, x: int, entry: int) -> list[int]:
    (new,) = logistic(g, r, x)
    return [g.add(new, entry), x]


CHAOTIC: dict[str, tuple[Write, list[Any]]] = {
    "scan": (chaotic(logistic), [3.9, 0.3]),
    "sequences": (
        lambda g, r, x, s: g.scan(r, x, s, body=logistic_with_entry, carries=1, sequences=1, reverse=True),
        [3.9, 0.3, 1e-3 * random(60)],
    ),
    "while": (
        lambda g, r, x: g.while_(r, x, condition=always, body=logistic, carries=1, max_steps=60)[:1],
        [3.9, 0.3],
    ),
    "nested": (
        lambda g, r, x: g.scan(
            r, x, body=lambda g, r, x: g.scan(r, x, body=logistic, carries=1, length=8), carries=1, length=8
        ),
        [3.9, 0.3],
    ),
}
#: ops that run a loop with any step, and their operands
RUNNING: dict[str, tuple[Callable[[Write], Write], list[Any]]] = {
    "map": (
        lambda step: lambda g, r, x: g.map(r, x, body=chaotic(step), sequences=1, at_once=2),
        [3.9, np.linspace(0.3, 0.7, 6)],
    ),
    "a sequence": (
        lambda step: lambda g, x, r: g.map(x, r, body=lambda g, x, r: chaotic(step)(g, r, x), sequences=1),
        [0.3, np.array([3.9, 3.8])],
    ),
    "then": (
        lambda step: (
            lambda g, r, x: g.cond(g.less(x, g.number(0.5)), r, x, then=chaotic(step), otherwise=chaotic(blind))
        ),
        [3.9, 0.3],
    ),
    "otherwise": (
        lambda step: (
            lambda g, r, x: g.cond(g.less(x, g.number(0.1)), r, x, then=chaotic(blind), otherwise=chaotic(step))
        ),
        [3.9, 0.3],
    ),
    "call": (lambda step: lambda g, r, x: g.call(r, x, body=chaotic(step), recompute=True), [3.9, 0.3]),
    "a cond in a scan": (
        lambda step: (
            lambda g, r, x: g.scan(
                r,
                x,
                body=lambda g, r, x: g.cond(g.less(x, g.number(0.5)), r, x, then=step, otherwise=step),
                carries=1,
                length=60,
            )
        ),
        [3.9, 0.3],
    ),
    "a while in a map": (
        lambda step: (
            lambda g, r, x: g.map(
                r,
                x,
                body=lambda g, r, x: g.while_(r, x, condition=always, body=step, carries=1, max_steps=60)[:1],
                sequences=1,
            )
        ),
        [3.9, np.array([0.3, 0.7])],
    ),
    "fixed_point": (lambda step: lambda g, r, x: fixed_point_with_loop(g, r, x, step), [3.9, 0.3]),
}


def fixed_point_with_loop(g: Writer, r: int, c: int, step: Write) -> list[int]:
    """Solve x = cos(y) / 2 + loop(c), and y = x sin(x) / 3."""

    def body(g: Writer, r: int, c: int, x: int, y: int) -> list[int]:
        new = g.add(g.mul_scalar(g.cos(y), scalar=0.5), chaotic(step)(g, r, c)[0])
        return [new, g.mul_scalar(g.mul(x, g.sin(x)), scalar=1 / 3)]

    first = g.number([0.1, 0.2])
    return g.fixed_point(r, c, first, first, body=body, carries=2, tolerance=1e-12, max_steps=300)[:2]


@pytest.mark.parametrize("case", CHAOTIC)
def test_chaotic_loop_is_certified_by_its_steps(case: str) -> None:
    write, arrays = CHAOTIC[case]
    report = certificate(write, *arrays)
    assert report.passed, report


@pytest.mark.parametrize("case", RUNNING)
def test_ops_that_run_a_chaotic_loop_are_certified(case: str) -> None:
    write, arrays = RUNNING[case]
    report = certificate(write(logistic), *arrays)
    assert report.passed, report


@pytest.mark.parametrize("case", RUNNING)
def test_wrong_derivative_inside_an_op_is_not_certified(case: str) -> None:
    write, arrays = RUNNING[case]
    assert not certificate(write(blind), *arrays).passed


def test_wrong_derivative_of_a_body_is_not_certified() -> None:
    report = certificate(chaotic(blind), 3.9, 0.3)
    assert not report.passed
    assert [one.node for one in report.uncertified] == [0]


@pytest.mark.parametrize("arrays", [(3.9, 0.3), (0.9, 0.3)])
def test_wrong_rule_of_scan_is_not_certified(monkeypatch: pytest.MonkeyPatch, arrays: tuple[float, float]) -> None:
    scan = registry().ops["scan"]
    right: Any = scan.vjp

    def rule(g: Any, y: Value, *operands: Value, **attrs: Any) -> list[Value | None]:
        const, *others = right(g, y, *operands, **attrs)
        return [const * 1.001, *others]

    assert certificate(chaotic(logistic), *arrays).passed
    monkeypatch.setattr(scan, "vjp", rule)
    assert not certificate(chaotic(logistic), *arrays).passed


@pytest.mark.slow
@pytest.mark.parametrize("op", ["map", "cond", "call", "fixed_point"])
def test_wrong_rule_of_ops_with_functions_is_not_certified(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    write, arrays = RUNNING["then" if op == "cond" else op]
    definition = registry().ops[op]
    right: Any = definition.vjp

    def rule(*operands: Any, **attrs: Any) -> list[Value | None]:
        return [None if g is None else g * 1.001 for g in right(*operands, **attrs)]

    monkeypatch.setattr(definition, "vjp", rule)
    for step in (logistic, turn):
        assert not certificate(write(step), *arrays).passed


@pytest.mark.slow
def test_wrong_adjoint_of_fixed_point_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    write, arrays = RUNNING["fixed_point"]
    monkeypatch.setattr("engine.ops.control.fixed_point._adjoint", _unsolved_adjoint)
    for step in (logistic, turn):
        assert not certificate(write(step), *arrays).passed


def _unsolved_adjoint(backward: BackwardBody, consts: int) -> Body:
    """Return g from consts, x, g and u."""
    carries = (len(backward.body.inputs) - consts) // 2
    types = [*backward.body.inputs, *backward.body.inputs[-carries:]]
    builder = Builder(registry())
    leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
    return Body(builder.graph([x.identity() for x in leaves[consts + carries : consts + 2 * carries]]), types)


def total_by_steps(asked: Written) -> tuple[Any, list[str]]:
    """Return the total with some steps of the loops unrolled, and the ops it consists of."""
    assert asked.total is not None
    call = Gradients.of_program(asked.program, asked.total)
    point = Point.widened(EXECUTOR, asked.program, asked.feeds, LIMITS, NO_DEADLINE)
    builder = point.builder()
    nodes = point.displaced(builder, call, (), lambda x, _: x, point.peeled(builder))
    (total,) = point.run_plan(point.plan(builder, [nodes[asked.total]]))
    read = ancestors([nodes[asked.total].index], lambda i: builder.nodes[i].operands)
    return total, [builder.nodes[i].op.name for i in read]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("length", "steps", "loops"), [(0, 0, 1), (1, 1, 0), (2, 2, 0), (3, 3, 0), (5, 5, 0), (6, 4, 1), (9, 3, 2)]
)
def test_partly_unrolled_loops_give_the_same_total(length: int, steps: int, loops: int, reverse: bool) -> None:
    def write(g: Writer, k: int, y: int, x: int) -> list[int]:
        return g.scan(k, y, x, body=recurrent, carries=1, sequences=1, reverse=reverse)

    asked = written(write, 0.7, 1.1, random(length))
    total, ops = total_by_steps(asked)
    (expected,) = EXECUTOR.run(Compiler(LIMITS).forward(asked.program, asked.types, [asked.total]).plan, asked.feeds)
    np.testing.assert_array_equal(total, expected)
    assert (ops.count("tanh"), ops.count("scan")) == (steps, loops)


def test_unrolled_ops_give_the_same_total() -> None:
    for write, arrays in [*PASSING.values(), *[(write(turn), arrays) for write, arrays in RUNNING.values()]]:
        asked = written(write, *arrays)
        assert asked.total is not None
        total, ops = total_by_steps(asked)
        (expected,) = run(asked, Values.of_program(asked.program, [asked.total]))
        np.testing.assert_allclose(total, expected, rtol=1e-14)
        assert "cond" not in ops


def test_while_is_unrolled_for_the_steps_that_run() -> None:
    def loop(g: Writer, k: int, y: int) -> list[int]:
        return g.while_(k, y, condition=below, body=turn, carries=1, max_steps=50)

    asked = written(loop, 0.7, 1.1)
    total, ops = total_by_steps(asked)
    (expected,) = EXECUTOR.run(Compiler(LIMITS).forward(asked.program, asked.types, [asked.total]).plan, asked.feeds)
    np.testing.assert_allclose(total, expected, 2 * np.finfo(float).eps if COMPILED else 0.0)  # a kernel runs it
    assert "while" not in ops
