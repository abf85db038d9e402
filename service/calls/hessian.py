"""Whole Hessians."""

from __future__ import annotations

from engine import Call, Hessian
from schemas.calls.hessian import HessianAnswer, HessianRequest
from service.calls.computing import CallArguments, Computing
from service.calls.definition import Guide
from service.calls.sample import MEAN


class HessianCall(Computing):
    """Whole Hessians.

    The second derivatives of `of` by every pair of nodes in `wrt`; exact, never by differences.
    """

    name = "hessian"
    position = 7
    request = HessianRequest
    answer = HessianAnswer
    scalar = True
    guide = Guide("∇²f, n × n", "at most 4 n", "Laplace's approximation, Newton's method, small n")
    examples = {"of a mean of squares": MEAN}

    def call(self, arguments: CallArguments) -> Call:
        """The Hessian of `of`."""
        return Hessian.of_program(arguments.program, *arguments.get("of", "wrt", "outputs"))
