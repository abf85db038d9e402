"""Errors on the way from a loop to its machine code: never a reason to fail, since NumPy computes the same."""

from __future__ import annotations


class KernelUnavailable(Exception):
    """Absence of machine code of a loop; the message says why: a whole sentence for an operator."""
