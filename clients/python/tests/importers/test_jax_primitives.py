"""Each rule for a JAX primitive, compared with JAX: values, and the gradients of all floats."""

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

from clients.python.tests.importers.jax_samples import SAMPLES, Sample
from clients.python.tests.importers.test_jax_programs import assert_matches, weight
from clients.python.tests.jax_primitives import PAGE, page
from gradserve_client.jax import import_function
from gradserve_client.jax.families.unsupported import UNSUPPORTED
from gradserve_client.jax.rules import RULES

#: primitives that JAX's functions do not bind, or only on several devices
UNBOUND = {
    "call": "of lax, which no function of JAX runs",
    "closed_call": "of functions that are traced twice",
    "empty": "of buffers that nobody has written",
    "empty2": "the same",
    "lu_pivots_to_permutation": "of factors that JAX gives no program",
    "pvary": "of several devices",
    "sharding_constraint": "of several devices",
}


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def test_each_rule_has_a_sample() -> None:
    assert {*RULES} - UNBOUND.keys() == {name for name, samples in SAMPLES.items() if samples}


def test_each_primitive_of_lax_has_a_rule_or_a_reason() -> None:
    modules = (jax.lax, jax.lax.linalg)
    primitives = {getattr(module, name).name for module in modules for name in dir(module) if name.endswith("_p")}
    assert primitives - {*RULES} - UNSUPPORTED.keys() == set()
    assert {*RULES} & UNSUPPORTED.keys() == set()


def floats_of(arguments: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(i for i, each in enumerate(arguments) if np.asarray(each).dtype.kind in "fc")


def loss_of(function: Any, *arguments: Any) -> Any:
    results = [leaf for leaf in jax.tree.leaves(function(*arguments)) if leaf.dtype.kind in "fc"]
    return sum((real_of(leaf) * weight(i, leaf.shape).astype(leaf.real.dtype)).sum() for i, leaf in enumerate(results))


def real_of(leaf: Any) -> Any:
    """The real contribution of a result to the loss; both parts of a complex result count."""
    return leaf.real + 0.5 * leaf.imag if leaf.dtype.kind == "c" else leaf


def wide_of(node: gs.Node, dtype: np.dtype[Any]) -> gs.Node:
    """The same contribution of a node of the graph, in float64."""
    counted = node.real().add(node.imag().mul_scalar(0.5)) if dtype.kind == "c" else node
    return counted.cast("float64")


def tolerated(sample: Sample) -> float:
    dtypes = {str(leaf.dtype) for leaf in jax.tree.leaves(jax.eval_shape(sample[0], *sample[1]))}
    return 1e-6 if dtypes & {"float32", "complex64"} else 1e-9


CASES = [(name, i) for name, samples in SAMPLES.items() for i in range(len(samples))]


@pytest.mark.parametrize(("name", "i"), CASES, ids=[f"{name}-{i}" for name, i in CASES])
def test_rule_matches_the_primitive(client: gs.Client, name: str, i: int) -> None:
    function, arguments = SAMPLES[name][i]
    places = floats_of(arguments)
    model = import_function(function, *arguments, parameters=places, max_steps=10)
    assert name in model.tally.occurrences or i, f"the sample does not run {name}"
    reference = jax.tree.leaves(function(*arguments))
    outputs = [*model.outputs.values()]
    floats = [(node, leaf) for node, leaf in zip(outputs, reference, strict=True) if leaf.dtype.kind in "fc"]
    feeds = model.feeds_of(*arguments)
    if floats and places:
        terms = [
            wide_of(node, leaf.dtype).mul(model.graph.constant(weight(k, leaf.shape))).sum()
            for k, (node, leaf) in enumerate(floats)
        ]
        answer = client.gradients(model.graph, feeds, of=reduce(gs.Node.add, terms), outputs=outputs)
        # JAX differentiates while loops only in forward mode
        differentiate = jax.jacfwd if name == "while" else jax.grad
        expected = differentiate(lambda *each: loss_of(function, *each), argnums=places)(*arguments)
        for actual, other in zip(model.gradients(answer.gradients), expected, strict=True):
            assert_matches(actual, other, "gradient", tolerated(SAMPLES[name][i]))
    else:
        answer = client.forward(model.graph, feeds, outputs=outputs)
    for node, other in zip(outputs, reference, strict=True):
        assert_matches(answer.values[node], other, "value", tolerated(SAMPLES[name][i]))


def test_page_of_primitives_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
