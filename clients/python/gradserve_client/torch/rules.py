"""The complete table of rules, and the reasons why other ops are unsupported."""

from __future__ import annotations

from gradserve_client.importing import Blocked
from gradserve_client.torch.families import (  # noqa: F401 - each puts its rules into the table
    activations,
    attention,
    borders,
    clamping,
    comparisons,
    complex_numbers,
    constants,
    convolution,
    distances,
    elementwise,
    factors,
    indexing,
    integers,
    losses,
    normalisation,
    ordering,
    pools,
    products,
    recurrent,
    reductions,
    resampling,
    sampling,
    scattering,
    shapes,
    spectra,
)
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.families.unsupported import UNSUPPORTED

__all__ = ["RULES", "refusal_of"]


def refusal_of(op: str) -> Blocked | None:
    """Return why an op is unsupported regardless of its operands, or None."""
    reason = UNSUPPORTED.get(op)
    return None if reason is None else Blocked(*reason)
