"""The complete table of rules, and the reasons why other primitives are unsupported."""

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
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.families.unsupported import UNSUPPORTED

__all__ = ["RULES", "refusal_of"]


def refusal_of(primitive: str) -> Blocked | None:
    """Return why a primitive is unsupported regardless of its operands, or None."""
    reason = UNSUPPORTED.get(primitive)
    return None if reason is None else Blocked(*reason)
