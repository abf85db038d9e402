"""Reads of values: refused, or recorded as guards, with a new recording if a guard comes out differently."""

from __future__ import annotations

import colorsys
import math
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace as xp

X = np.array([1.0, 2.0, 3.0])


class Counted:
    """A function, and the number of its recordings."""

    def __init__(self, function: Any, client: gs.Client) -> None:
        self.times = 0

        def counting(*args: Any) -> Any:
            self.times += 1
            return function(*args)

        self.function = gs.function(counting, client=client, values="guarded")


def branching(x: Any) -> Any:
    return xp.sum(x * x) if xp.sum(x) > 0 else xp.sum(-3 * x)


@pytest.mark.parametrize("look", [bool, float, int, lambda x: [1, 2, 3][xp.astype(x, xp.int64)]])
def test_value_reads_are_refused_with_line_and_hint(client: gs.Client, look: Any) -> None:
    with pytest.raises(gs.RecordingError, match=r"\(test_guards.py:\d+\).*where\(\).*guarded"):
        gs.function(lambda x: look(x[0]) * x, client=client)(X)


def test_error_inside_a_library_names_the_users_line(client: gs.Client) -> None:
    with pytest.raises(gs.RecordingError, match=r"bool \(test_guards.py:\d+\)"):
        gs.function(lambda x: colorsys.rgb_to_hls(*x), client=client)(X)
    nodes = gs.function(lambda x: colorsys.rgb_to_yiq(*x), client=client).graph(X)
    assert {node.line.file for node in nodes} == {__file__}


def test_changed_guard_records_again(client: gs.Client) -> None:
    counted = Counted(branching, client)
    f = counted.function
    assert f.value_and_grad(X)[1].tolist() == [2, 4, 6]
    assert f.grad(2 * X).tolist() == [4, 8, 12]
    assert counted.times == 1
    assert f.value_and_grad(-X) == (18, pytest.approx([-3, -3, -3]))
    assert counted.times == 2
    assert f(X) == 14
    assert f(-X) == 18
    assert counted.times == 2


def test_every_call_checks_guards(client: gs.Client) -> None:
    f = gs.function(branching, client=client, values="guarded")
    f(X)
    assert f.hessian(-X).tolist() == np.zeros((3, 3)).tolist()
    assert f.hvp(X, vectors=X).tolist() == [2, 4, 6]
    assert f.jvp(-X, tangents=X)[1] == -18
    assert f.vjp(X, cotangents=2.0)[1].tolist() == [4, 8, 12]
    assert f.jacobian(-X).tolist() == [-3, -3, -3]
    assert f.check(X).passed
    assert [node.op for node in f.graph(X)] != [node.op for node in f.graph(-X)]
    assert f.plan(-X).admitted
    values, gradients = f.batch(np.array([X, 2 * X]), wrt=0)
    assert values.tolist() == [14, 56]
    assert gradients.tolist() == [[2, 4, 6], [4, 8, 12]]
    assert f.batch(np.array([-X, -X])).tolist() == [18, 18]


def test_batch_examples_must_agree_on_guards(client: gs.Client) -> None:
    f = gs.function(branching, client=client, values="guarded")
    with pytest.raises(gs.RecordingError, match=r"examples of a batch.*test_guards.py:\d+.*where"):
        f.batch(np.array([X, -X]))


def test_function_is_recorded_again_at_most_eight_times(client: gs.Client) -> None:
    counted = Counted(lambda x: x * float(x[0]), client)
    for i in range(9):
        assert counted.function(X + i)[1] == (1 + i) * (2 + i)
    assert counted.times == 9
    with pytest.raises(gs.RecordingError, match=r"recorded again 8 times.*test_guards.py:\d+.*where"):
        counted.function(X + 9)
    assert counted.times == 9
    assert counted.function(X + 3)[1] == 20
    assert counted.function(np.ones(2)).tolist() == [1, 1]


def test_reads_independent_of_arguments_are_no_guards(client: gs.Client) -> None:
    def f(x: Any) -> Any:
        tiny = xp.asarray(0.5)
        assert float(tiny) == 0.5
        assert bool(xp.sum(xp.exp(xp.asarray([1.0, 2.0]))) > 1)
        return x

    guarded = gs.function(f, client=client, values="guarded")
    assert [node.op for node in guarded.graph(X)].count("input") == 1
    assert guarded.source.recordings_of(next(iter(guarded.source._recordings))).recordings[0].guards == []


def test_constants_need_no_guard(client: gs.Client) -> None:
    assert gs.function(lambda x: x if xp.asarray(True) else -x, client=client)(X).tolist() == X.tolist()


def test_guards_of_every_kind(client: gs.Client) -> None:
    def f(x: Any, n: Any) -> Any:
        assert math.isnan(float(x[0]))
        assert int(x[1]) == 2
        return xp.sum(x[1:]) * range(10)[n]

    counted = Counted(f, client)
    array = np.array([math.nan, 2.5, 4.0])
    assert counted.function(array, 3) == 19.5
    assert counted.function(array, 3) == 19.5
    assert counted.times == 1


def test_only_single_elements_can_be_read(client: gs.Client) -> None:
    with pytest.raises(gs.RecordingError, match=r"bool \(test_guards.py:\d+\): float64\[3\] has 3 elements"):
        gs.function(lambda x: x or -x, client=client, values="guarded")(X)
    assert gs.function(lambda x: x or -x, client=client, values="guarded")(X[:1]).tolist() == [1]


def test_large_integers_cannot_be_read(client: gs.Client) -> None:
    with pytest.raises(gs.RecordingError, match="beyond 2⁵³"):
        gs.function(lambda n: n + int(n), client=client, values="guarded")(2**60)


def test_unknown_mode_is_refused(client: gs.Client) -> None:
    with pytest.raises(gs.InputError, match="guarded"):
        gs.function(branching, client=client, values="sometimes")  # type: ignore[call-overload] # that is refused
