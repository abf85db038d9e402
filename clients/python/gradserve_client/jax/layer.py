"""Recorded functions as functions of JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.jax.primitives import apply
from gradserve_client.recording.arguments import NUMPY, Fed, LeafType, Library
from gradserve_client.recording.function import Function
from gradserve_client.recording.maps import TypedNode
from gradserve_client.resident import Resident


def layer(f: Function) -> Callable[..., Any]:
    """A recorded function that takes arrays of JAX and gives arrays, under every transformation, in any order.

        jax.jit(jax.vmap(jax.grad(layer(f))))(xs)

    It is called with what `f` is called with. JAX traces it before there are values, so `f` may not look at any. Where
    `f` gives one float, its gradients come with the value, in one call. `vmap` is one call, too.

    Without `jax_enable_x64` JAX has no float64 and no int64: then `f` is recorded for arrays of float32 and int32.

    Calls raise what those of `f` raise; under `jit`, JAX raises its own error, which says so. InputError for a dtype
    that JAX does not have.
    """

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorded, to, given = f.mapped_for(_JAX, args, kwargs)
        _check(recorded.outputs)
        names = tuple((place, value.name) for place, value in enumerate(given) if isinstance(value, Resident))
        operands = [jnp.asarray(value) for value in given if not isinstance(value, Resident)]
        return recorded.structure.build(iter(apply(to.bound(names), operands)))

    return call


def _is_array(value: object) -> bool:
    return isinstance(value, jax.Array) or NUMPY.is_array(value)


def _type(value: Any) -> Fed:
    """The type that an array has in JAX."""
    if isinstance(value, Resident):
        return value
    known = jax.typeof(value)
    return LeafType(np.dtype(known.dtype), known.shape)


_JAX: Final = Library(_is_array, _type)


def _check(outputs: Sequence[TypedNode]) -> None:
    for output in outputs:
        if jax.dtypes.canonicalize_dtype(output.dtype) != output.dtype:
            raise InputError(
                f"the function gives {output.dtype.name}, which JAX has where jax_enable_x64 is set: set it, or give "
                "another dtype"
            )
