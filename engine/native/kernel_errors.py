"""Errors on the way from a loop to its machine code: never a reason to fail, since NumPy computes the same."""

from __future__ import annotations


class KernelUnavailable(Exception):
    """There is no machine code of a loop here, and the message says why: a whole sentence for an operator."""
