"""Functions of JAX: a pendulum that is integrated by a scan, and the likelihood of a Gaussian process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from clients.gallery.example import Evaluate, ImportedExample
from gradserve_client.importing import Imported
from gradserve_client.jax import import_function
from gradserve_client.tensors import Array

_SOURCE: Final = f"JAX {jax.__version__}"


def _loading(
    function: Callable[..., Any], parameters: Mapping[str, Array], inputs: Mapping[str, Array]
) -> Callable[[], tuple[Imported, Evaluate]]:
    """A function of a dict of parameters, called `params`, and of these inputs."""

    def evaluate(known: Mapping[str, Array]) -> list[Array]:
        params = {name: known[f"params.{name}"] for name in parameters}
        with jax.enable_x64(True):
            return [np.asarray(function(params, *(known[name] for name in inputs)))]

    def load() -> tuple[Imported, Evaluate]:
        with jax.enable_x64(True):
            return import_function(function, dict(parameters), *inputs.values()), evaluate

    return load


def _pendulum(params: dict[str, Any], start: Any) -> Any:
    """Angles at twelve moments, by the midpoint rule."""

    def slope(state: Any) -> Any:
        angle, speed = state
        return jnp.stack([speed, -params["gravity"] * jnp.sin(angle) - params["friction"] * speed])

    def step(state: Any, _: Any) -> tuple[Any, Any]:
        after = state + 0.1 * slope(state + 0.05 * slope(state))
        return after, after[0]

    return jax.lax.scan(step, start, None, length=12)[1]


def _likelihood(params: dict[str, Any], place: Any, seen: Any) -> Any:
    """The logarithm of a likelihood, by a Cholesky factor."""
    apart = (place[:, None] - place[None, :]) / jnp.exp(params["log_length"])
    covariance = jnp.exp(-0.5 * apart**2) + jnp.exp(params["log_noise"]) * jnp.eye(place.size)
    factor = jnp.linalg.cholesky(covariance)
    whitened = jax.scipy.linalg.solve_triangular(factor, seen, lower=True)
    return -0.5 * whitened @ whitened - jnp.sum(jnp.log(jnp.diag(factor))) - 0.5 * place.size * jnp.log(2 * jnp.pi)


_START: Final = {"start": np.array([1.0, 0.0])}
_PENDULUM: Final = ImportedExample(
    name="jax_pendulum",
    title="A pendulum with friction, from JAX",
    paragraph="Twelve steps of the midpoint rule, written with lax.scan. The step is a function of the graph, so the "
    "graph would be no longer for a thousand steps. The gradient shows how the angles depend on gravity and friction.",
    source=_SOURCE,
    tags=("physics", "imported", "JAX"),
    inputs=_START,
    load=_loading(_pendulum, {"gravity": np.array(9.81), "friction": np.array(0.3)}, _START),
)

_POINTS: Final = {"place": np.array([0.0, 0.7, 1.5, 2.2, 3.1]), "seen": np.array([0.1, 0.6, 0.9, 0.7, 0.0])}
_PROCESS: Final = ImportedExample(
    name="jax_gaussian_process",
    title="Likelihood of a Gaussian process, from JAX",
    paragraph="Five points under a squared exponential kernel. The Cholesky factor and the triangular system are "
    "nodes. The gradient is with respect to the logarithms of length scale and noise.",
    source=_SOURCE,
    tags=("statistics", "imported", "JAX"),
    inputs=_POINTS,
    load=_loading(_likelihood, {"log_length": np.array(0.2), "log_noise": np.array(-3.0)}, _POINTS),
)

EXAMPLES: Final = (_PENDULUM, _PROCESS)
