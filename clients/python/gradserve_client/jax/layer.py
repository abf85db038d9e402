"""Recorded functions as JAX functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.jax.primitives import apply
from gradserve_client.recording.arguments import NUMPY, Feed, LeafType, Library
from gradserve_client.recording.function import Function
from gradserve_client.recording.maps import TypedNode
from gradserve_client.resident import Resident


def layer(f: Function) -> Callable[..., Any]:
    """Wrap a recorded function as a JAX function that works under every transformation, to any order.

        jax.jit(jax.vmap(jax.grad(layer(f))))(xs)

    It takes the same arguments as `f`. JAX traces it without values, so `f` must not read them. If `f` returns one
    float, one request returns the value and its gradients. A `vmap` is one request, too.

    Without `jax_enable_x64` JAX has neither float64 nor int64; `f` is then recorded for float32 and int32 arrays.

    Calls raise the errors of `f`; under `jit`, JAX wraps them in its own error. Raises InputError for an output dtype
    that JAX is not configured for.
    """

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorded, map_, values = f.map_for(_JAX, args, kwargs)
        _require_dtypes(recorded.outputs)
        names = tuple((position, value.name) for position, value in enumerate(values) if isinstance(value, Resident))
        operands = [jnp.asarray(value) for value in values if not isinstance(value, Resident)]
        return recorded.structure.build(iter(apply(map_.with_residents(names), operands)))

    return call


def _is_array(value: object) -> bool:
    return isinstance(value, jax.Array) or NUMPY.is_array(value)


def _type(value: Any) -> Feed:
    """Return the dtype and shape of an array in JAX. A resident tensor is its own type."""
    if isinstance(value, Resident):
        return value
    aval = jax.typeof(value)
    return LeafType(np.dtype(aval.dtype), aval.shape)


_JAX: Final = Library(_is_array, _type)


def _require_dtypes(outputs: Sequence[TypedNode]) -> None:
    for output in outputs:
        if jax.dtypes.canonicalize_dtype(output.dtype) != output.dtype:
            raise InputError(
                f"the function returns {output.dtype.name}, which JAX supports only with jax_enable_x64: set it, or "
                "return another dtype"
            )
