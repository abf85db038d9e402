"""A small program that is written three times: as a graph, for PyTorch and for JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np

Arrays: TypeAlias = Mapping[str, np.ndarray]
Lacking: TypeAlias = Mapping[str, frozenset[str]]

#: by name
PROGRAMS: dict[str, type[Program]] = {}


class Program:
    """Leaves, and what is computed of them: first a loss, a real number, then whatever else is compared.

    `graph` is given a graph and the nodes of the leaves by name, and gives back nodes; `by_torch` and `by_jax` are
    given the leaves as these libraries have them, and give back the same. The loss is differentiated by all leaves, but
    for those by which a library has no gradient: `lacking` names them, and `by_mpmath` then is the loss in many digits.
    """

    leaves: ClassVar[Arrays]
    lacking: ClassVar[Lacking] = {}

    def __init_subclass__(cls) -> None:
        PROGRAMS[cls.__name__] = cls

    @staticmethod
    def graph(g: Any, **leaves: Any) -> tuple[Any, ...]:
        """As nodes."""
        raise NotImplementedError

    @staticmethod
    def by_torch(**leaves: Any) -> tuple[Any, ...]:
        """As tensors of PyTorch."""
        raise NotImplementedError

    @staticmethod
    def by_jax(**leaves: Any) -> tuple[Any, ...]:
        """As arrays of JAX."""
        raise NotImplementedError

    @staticmethod
    def by_mpmath(**leaves: Any) -> Any:
        """The loss, of lists of numbers with many digits."""
        raise NotImplementedError


def normal(seed: int, *shape: int) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape)


def complex_normal(seed: int, *shape: int) -> np.ndarray:
    """Complex numbers whose parts are normal."""
    return normal(seed, *shape) + 1j * normal(seed + 1000, *shape)


def uniform(seed: int, low: float, high: float, *shape: int) -> np.ndarray:
    """Numbers that are as likely everywhere between two bounds."""
    return np.random.default_rng(seed).uniform(low, high, shape)
