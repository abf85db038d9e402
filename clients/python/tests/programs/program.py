"""A small program, implemented three times: as a graph, in PyTorch and in JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np

Arrays: TypeAlias = Mapping[str, np.ndarray]
Lacking: TypeAlias = Mapping[str, frozenset[str]]

#: programs by name
PROGRAMS: dict[str, type[Program]] = {}


class Program:
    """Leaves, and a computation of them: first a loss, a real number, then the other results to compare.

    `graph` takes a graph and the nodes of the leaves by name, and returns nodes; `by_torch` and `by_jax` take the
    leaves as arrays of these libraries, and return the same results. The loss is differentiated with respect to all
    leaves, except those for which a library lacks a gradient: `lacking` names them, and `by_mpmath` is the loss in many
    digits.
    """

    leaves: ClassVar[Arrays]
    lacking: ClassVar[Lacking] = {}

    def __init_subclass__(cls) -> None:
        PROGRAMS[cls.__name__] = cls

    @staticmethod
    def graph(g: Any, **leaves: Any) -> tuple[Any, ...]:
        """Compute with nodes."""
        raise NotImplementedError

    @staticmethod
    def by_torch(**leaves: Any) -> tuple[Any, ...]:
        """Compute with PyTorch tensors."""
        raise NotImplementedError

    @staticmethod
    def by_jax(**leaves: Any) -> tuple[Any, ...]:
        """Compute with JAX arrays."""
        raise NotImplementedError

    @staticmethod
    def by_mpmath(**leaves: Any) -> Any:
        """Compute the loss from lists of numbers with many digits."""
        raise NotImplementedError


def normal(seed: int, *shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape)


def complex_normal(seed: int, *shape: int) -> np.ndarray:
    """Complex numbers whose parts are normal."""
    return normal(seed, *shape) + 1j * normal(seed + 1000, *shape)


def uniform(seed: int, low: float, high: float, *shape: int) -> np.ndarray:
    """Uniform numbers between two bounds."""
    return np.random.default_rng(seed).uniform(low, high, shape)
