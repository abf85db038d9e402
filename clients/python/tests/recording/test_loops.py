"""Loops and branches in recorded functions: results, operands and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace as xp
from gradserve_client.requests import to_wire

XS = np.arange(6.0).reshape(3, 2)


def decay(k: Any, y0: Any) -> Any:
    def step(y: Any, _: None) -> tuple[Any, Any]:
        y = y - k * y / 2
        return y, y

    return xp.sum(gs.scan(step, y0, length=4)[1])


def test_scan_matches_the_wire_example(client: gs.Client) -> None:
    f = gs.function(decay, client=client)
    assert [float(each) for each in f.value_and_grad(1.0, 16.0)] == [15, -26]
    assert f.hessian(1.0, 16.0) == pytest.approx(np.array(32.0))
    assert f.check(1.0, 16.0).passed
    assert f.plan(1.0, 16.0).admitted
    assert f.batch(np.array([1.0, 0.5]), 16.0, mapped="k").tolist() == [15, 32.8125]


def test_closed_over_values_become_leading_operands(client: gs.Client) -> None:
    graph = gs.function(decay, client=client).graph(1.0, 16.0)
    (function,) = graph.functions
    assert function.name == "step"
    assert len(function.parameters) == 2
    scan = next(node for node in graph if node.op == "scan")
    assert (scan.operands, scan.attrs) == ((0, 1), {"body": 0, "carries": 1, "sequences": 0, "length": 4})
    assert to_wire(graph)["opset"] == 2


def numpy_nested(xs: Any, w: Any) -> tuple[Any, list[float]]:
    a, seen = 1.0, []
    for x in xs:
        d = 0.0
        for z in x:
            d = d + z * w * a
        a = a + d
        seen.append(d if d > 1 else -d)
    return a, seen


def nested(xs: Any, w: Any) -> Any:
    def outer(carry: Any, x: Any) -> Any:
        d, stacked = gs.scan(lambda d, z: (d + z * w * carry["a"], None), 0.0, x)
        assert stacked is None
        return {"a": carry["a"] + d}, [gs.cond(d > 1, lambda: d, lambda: -d)]

    carry, (seen,) = gs.scan(outer, {"a": 1.0}, xs)
    return carry["a"], seen


def test_nested_functions_read_all_enclosing_values(client: gs.Client) -> None:
    f = gs.function(nested, client=client)
    a, seen = f(XS, 0.3)
    expected, all_seen = numpy_nested(XS, 0.3)
    assert np.isclose(a, expected)
    assert np.allclose(seen, all_seen)
    slope = (numpy_nested(XS, 0.3 + 1e-6)[0] - numpy_nested(XS, 0.3 - 1e-6)[0]) / 2e-6
    assert np.isclose(gs.function(lambda xs, w: nested(xs, w)[0], client=client).grad(XS, 0.3, wrt="w"), slope)


def test_scan_over_trees_in_both_directions(client: gs.Client) -> None:
    def weighted(xs: Any, reverse: bool) -> Any:
        def step(total: Any, x: Any) -> Any:
            total = total * 0.5 + x["a"] * x["b"][0]
            return total, (total, 1)

        return gs.scan(step, np.zeros(2), {"a": xs, "b": (xs[:, 0],)}, reverse=reverse)

    f = gs.function(weighted, client=client)
    for reverse in (False, True):
        total, seen = np.zeros(2), np.empty((3, 2))
        for i in range(3)[:: -1 if reverse else 1]:
            total = seen[i] = total * 0.5 + XS[i] * XS[i, 0]
        last, (stack, ones) = f(XS, reverse)
        assert np.allclose(last, total)
        assert np.allclose(stack, seen)
        assert (ones.dtype, ones.tolist()) == (np.int64, [1, 1, 1])


def test_map(client: gs.Client) -> None:
    f = gs.function(lambda xs, w: gs.map(lambda x: {"dot": x @ w}, xs, at_once=2)["dot"], client=client)
    assert np.allclose(f(XS, np.array([1.0, 2.0])), XS @ [1, 2])


def test_while_loop_reports_whether_it_finished(client: gs.Client) -> None:
    def root(a: Any, most: int) -> Any:
        return gs.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a, max_steps=most)

    f = gs.function(root, client=client, static="most")
    x, steps, finished = f(2.0, 50)
    assert (float(x), bool(finished)) == (pytest.approx(2**0.5), True)
    assert not f(2.0, int(steps) - 1)[2]
    assert gs.function(lambda a: root(a, 50)[0], client=client).grad(2.0) == pytest.approx(8**-0.5)


def test_number_takes_the_dtype_of_the_carry_if_it_fits(client: gs.Client) -> None:
    f = gs.function(lambda x: gs.scan(lambda c, _: (0, c), x, length=2), client=client)
    last, seen = f(np.float32(3))
    assert (last.dtype, seen.tolist()) == (np.float32, [3, 0])
    with pytest.raises(gs.RecordingError, match=r"begins as int64\[\], but becomes float64\[\]"):
        gs.function(lambda x: gs.scan(lambda c, _: (0.5, None), x, length=2)[0], client=client)(3)


def test_fixed_point_has_an_implicit_gradient(client: gs.Client) -> None:
    def root(a: Any) -> Any:
        return gs.fixed_point(lambda x: (x + a / x) / 2, 1.0, tolerance=1e-13, max_steps=99)[0]

    value, slope = gs.function(root, client=client).value_and_grad(2.0)
    assert (float(value), float(slope)) == (pytest.approx(2**0.5), pytest.approx(8**-0.5))


def test_cond_runs_one_branch(client: gs.Client) -> None:
    f = gs.function(lambda x: gs.cond(x > 0, xp.log, lambda x: x * 2, x), client=client)
    assert [float(f.grad(x)) for x in (4.0, -4.0)] == [0.25, 2]
    g = gs.function(lambda x: gs.cond(True, lambda: x, lambda: np.ones(2)), client=client)
    assert g(XS[1]).tolist() == [2, 3]


def test_call_with_a_custom_derivative(client: gs.Client) -> None:
    def straight(operands: Any, result: Any, cotangents: Any) -> Any:
        ((x, n),) = (operands,)
        assert [each.dtype.name for each in (x, n, *result, *cotangents)] == [
            "float64", "int64", "float64", "int64", "float64", "float64",
        ]  # fmt: skip
        return cotangents[0] * 3

    def f(x: Any) -> Any:
        rounded, n = gs.call(lambda x, n: (xp.round(x), n), x, 7, derivative=straight)
        return xp.sum(rounded * n)

    assert gs.function(f, client=client).grad(np.array([1.2, 2.7])).tolist() == [21, 21]


def test_call_recomputes(client: gs.Client) -> None:
    f = gs.function(lambda x: gs.call(lambda y: y * y * x, x, recompute=True), client=client)
    assert [float(each) for each in f.value_and_grad(3.0)] == [27, 27]
    assert next(node for node in f.graph(3.0) if node.op == "call").attrs["recompute"] is True


def step(c: Any, x: Any) -> Any:
    return c, x


#: refused programs, and patterns of the messages
WRONG: dict[str, tuple[Any, str]] = {
    "a carry of another dtype": (
        lambda x: gs.scan(lambda c, _: (c > 0, None), x, length=3)[0],
        r"scan \(test_loops.py:\d+\): the carry begins as float64\[\], but becomes bool\[\]",
    ),
    "a carry of another shape": (
        lambda x: gs.scan(lambda c, _: ({"a": c["a"] + np.ones(3)}, None), {"a": x}, length=3)[0]["a"],
        r"the carry begins as float64\[\] at .a, but becomes float64\[3\]",
    ),
    "a carry of another structure": (
        lambda x: gs.while_loop(lambda c: c[0] > 0, lambda c: c[0], [x], max_steps=3)[1],
        r"while_loop .*the carry begins as \[float64\[\]\], but becomes float64\[\]",
    ),
    "no pair": (lambda x: gs.scan(lambda c, _: c, x, length=3)[0], "return the next carry and the values to stack"),
    "no length": (lambda x: gs.scan(step, x)[0], "pass length, the number of steps, if there are no xs"),
    "two lengths": (lambda x: gs.scan(step, x, [XS, XS[:2]])[0], "disagree on the number of steps: 2, 3"),
    "another length": (lambda x: gs.scan(step, x, XS, length=4)[0], "disagree on the number of steps: 3, 4"),
    "no axis": (lambda x: gs.map(lambda e: e, {"a": x}), r"map .*xs.a is float64\[\], which has no axis"),
    "nothing to go through": (lambda x: gs.map(lambda e: x, ()), "xs contains no array"),
    "no condition": (lambda x: gs.while_loop(lambda c: c, lambda c: c, x, max_steps=3)[0], "one bool, not float64"),
    "no predicate": (lambda x: gs.cond(x, lambda: 1.0, lambda: 2.0), r"cond .*one bool, not float64\[\]"),
    "unequal branches": (
        lambda x: gs.cond(x > 0, lambda: x, lambda: x > 0),
        r"one function returns float64\[\], but the other bool\[\]",
    ),
    "a point of integers": (
        lambda x: gs.fixed_point(lambda n: n, 1, tolerance=0, max_steps=3),
        r"x must be of floats, not int64\[\]",
    ),
    "a derivative that reads more": (
        lambda x: gs.call(lambda y: y * x, x, derivative=lambda o, r, c: c),
        r"can read only its operands, but float64\[\] is not one of them",
    ),
    "a derivative of too many": (
        lambda x: gs.call(lambda y: y, x, derivative=lambda o, r, c: (c, c)),
        r"a cotangent for each float operand, float64\[\], not float64\[\], float64\[\]",
    ),
    "a look": (
        lambda x: gs.scan(lambda c, _: (c if c > 0 else -c, None), x, length=3)[0],
        r"bool \(test_loops.py:\d+\): .*gs.cond\(\), loop with gs.while_loop\(\) or gs.scan\(\)$",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_invalid_loops_are_refused(client: gs.Client, name: str) -> None:
    function, pattern = WRONG[name]
    for values in ("never", "guarded"):
        with pytest.raises(gs.RecordingError, match=pattern):
            gs.function(function, client=client, values=values)(1.0)  # type: ignore[call-overload]


def test_value_read_outside_loops_suggests_branches(client: gs.Client) -> None:
    with pytest.raises(gs.RecordingError, match=r'gs.cond\(\), .*or record with values="guarded"'):
        gs.function(lambda x: x if x > 0 else -x, client=client)(1.0)


def test_value_read_of_an_enclosing_array_is_a_guard(client: gs.Client) -> None:
    def power(x: Any) -> Any:
        is_positive = x > 0
        return gs.scan(lambda c, _: (c * (2 if is_positive else 3), None), x, length=2)[0]

    f = gs.function(power, client=client, values="guarded")
    assert [float(f(x)) for x in (1.0, -1.0)] == [4, -9]


def test_values_cannot_leak_out_of_a_loop_body(client: gs.Client) -> None:
    def leaks(x: Any) -> Any:
        leaked: list[Any] = []
        gs.scan(lambda c, _: (leaked.append(c) or c, None), x, length=2)
        return leaked[0] + 1

    def changes(x: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            nonlocal x
            x += c
            return c, None

        gs.scan(step, x, length=2)
        return x

    with pytest.raises(gs.RecordingError, match="belongs to another recorded function"):
        gs.function(leaks, client=client)(1.0)
    with pytest.raises(gs.RecordingError, match="make it a carry"):
        gs.function(changes, client=client)(1.0)


def test_error_in_a_loop_body_names_its_line(client: gs.Client) -> None:
    f = gs.function(lambda x: gs.scan(lambda c, _: (xp.reshape(c, (4,)), None), x, length=2)[0], client=client)
    with pytest.raises(gs.RecordingError, match=r"^reshape \(test_loops.py:\d+\)"):
        f(np.ones(3))
