"""The table of rules, with those of all families; and what is refused by name, with the reason."""

from __future__ import annotations

from gradserve_client.importing import Blocked
from gradserve_client.jax.families import (  # noqa: F401 - each puts its rules into the table
    along_axes,
    calls,
    casts,
    complex_numbers,
    control_flow,
    convolution,
    elementwise,
    factors,
    indexing,
    integers,
    linear_algebra,
    products,
    randomness,
    reductions,
    scattering,
    shapes,
    spectra,
    windows,
)
from gradserve_client.jax.families.refused import REFUSED
from gradserve_client.jax.families.table import RULES

__all__ = ["RULES", "refusal_of"]


def refusal_of(primitive: str) -> Blocked | None:
    """Why a primitive is refused whatever its operands are, or None."""
    stated = REFUSED.get(primitive)
    return None if stated is None else Blocked(*stated)
