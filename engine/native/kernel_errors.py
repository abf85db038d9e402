"""Kernels that are not there: the error, the keys that are not tried again, and one line of the log for each reason.

This is never a reason to fail, since NumPy computes the same.
"""

from __future__ import annotations


class KernelUnavailable(Exception):
    """Absence of machine code of a kernel; the message says why: a whole sentence for an operator."""
