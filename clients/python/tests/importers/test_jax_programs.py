"""JAX programs as graphs: values and gradients of all parameters match those of JAX."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

pytest.importorskip("jax", reason="JAX is not installed")
pytest.importorskip("optax", reason="optax is not installed")

import jax

from clients.python.tests.importers.jax_programs import PROGRAMS, Program
from gradserve_client.jax import ImportedFunction, import_function


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def imported(program: Program) -> ImportedFunction:
    return import_function(program.function, *program.arguments, parameters=program.parameters, **program.options)


def weight(place: int, shape: tuple[int, ...]) -> np.ndarray:
    """The weights of a result's elements in the loss, different for each result."""
    return np.random.default_rng(place).uniform(0.5, 1.5, shape)


def expected(program: Program) -> tuple[Any, Any]:
    """JAX's result, and its gradients of the loss."""

    def loss(*arguments: Any) -> Any:
        result = program.function(*arguments)
        floats = [leaf for leaf in jax.tree.leaves(result) if leaf.dtype.kind == "f"]
        return sum((leaf * weight(i, leaf.shape)).sum() for i, leaf in enumerate(floats)), result

    differentiate = jax.jacfwd if program.has_while else jax.grad
    gradients, result = jax.jit(differentiate(loss, argnums=program.parameters, has_aux=True))(*program.arguments)
    return result, gradients


def assert_matches(actual: Any, reference: Any, name: str, tolerance: float = 1e-9) -> None:
    one, other = np.asarray(actual), np.asarray(reference)
    assert (one.shape, one.dtype) == (other.shape, other.dtype), name
    if other.dtype.kind not in "fc":
        assert np.array_equal(one, other), name
        return
    scale = max(1.0, float(np.abs(other).max(initial=0)))
    assert np.abs(one - other).max(initial=0) <= tolerance * scale, name


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(client: gs.Client, name: str) -> None:
    program = PROGRAMS[name]
    result, gradients = expected(program)
    model = imported(program)
    leaves = jax.tree.leaves(result)
    floats = [node for node, leaf in zip(model.outputs.values(), leaves, strict=True) if leaf.dtype.kind == "f"]
    shapes = [leaf.shape for leaf in leaves if leaf.dtype.kind == "f"]
    terms = [
        node.mul(model.graph.constant(weight(i, shape))).sum()
        for i, (node, shape) in enumerate(zip(floats, shapes, strict=True))
    ]
    loss = reduce(gs.Node.add, terms)
    answer = client.gradients(
        model.graph, model.feeds_of(*program.arguments), of=loss, outputs=[*model.outputs.values()]
    )
    assert jax.tree.structure(model.result(answer.values)) == jax.tree.structure(result)
    for actual, reference, output in zip(
        jax.tree.leaves(model.result(answer.values)), leaves, model.outputs, strict=True
    ):
        assert_matches(actual, reference, output)
    names = [name for i in np.atleast_1d(program.parameters) for name in model.arguments[i].names]
    for actual, reference, parameter in zip(
        jax.tree.leaves(model.gradients(answer.gradients)), jax.tree.leaves(gradients), names, strict=True
    ):
        assert_matches(actual, reference, parameter)
