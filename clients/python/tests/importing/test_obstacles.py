"""Obstacles to an import are collected and raised together."""

from __future__ import annotations

import pickle

import pytest

import gradserve_client as gs
from gradserve_client.importing import Blocked, ImportRefused, Obstacles


def test_no_obstacles_raise_no_error() -> None:
    Obstacles().raise_all("the model")


def test_same_reason_is_one_obstacle_with_several_places() -> None:
    obstacles = Obstacles()
    for i in range(5):
        obstacles.add("sample", f"line {i}", Blocked("it is random", "pass the noise as an input"))
    obstacles.add("sample", "line 9", Blocked("its shape is computed"))
    with pytest.raises(ImportRefused) as caught:
        obstacles.raise_all("the module Net")
    assert isinstance(caught.value, gs.InputError)
    assert str(caught.value) == (
        "cannot import the module Net because of 2 obstacles:\n"
        "  sample (5 times, at line 0, line 1, line 2, …): it is random; pass the noise as an input\n"
        "  sample (at line 9): its shape is computed"
    )
    assert caught.value.obstacles[0].places == tuple(f"line {i}" for i in range(5))


def test_refusal_survives_pickling() -> None:
    obstacles = Obstacles()
    obstacles.add("op", "here", Blocked("why", "how else", ["x"]))
    error = ImportRefused("the model", [*obstacles])
    restored = pickle.loads(pickle.dumps(error))
    assert (str(restored), restored.obstacles) == (str(error), error.obstacles)
    assert restored.obstacles[0].reads == ("x",)
    assert str(error).startswith("cannot import the model because of one obstacle:\n")
