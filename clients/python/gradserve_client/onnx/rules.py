"""Table of all rules, and the ops that are refused by name, with the reason."""

from __future__ import annotations

from gradserve_client.importing import Blocked
from gradserve_client.onnx.families import (  # noqa: F401 - each puts its rules into the table
    activations,
    arithmetic,
    attention,
    bits,
    control_flow,
    convolution,
    indexing,
    normalisation,
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
from gradserve_client.onnx.families.table import RULES
from gradserve_client.onnx.families.unsupported import UNSUPPORTED

__all__ = ["RULES", "refusal_of"]


def refusal_of(op: str) -> Blocked | None:
    """Return why an op is refused whatever its operands are, or None."""
    stated = UNSUPPORTED.get(op)
    return None if stated is None else Blocked(*stated)
