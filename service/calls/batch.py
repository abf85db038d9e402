"""One graph on many examples."""

from __future__ import annotations

from engine import Batch, Call
from schemas.calls.batch import BatchRequest
from schemas.calls.gradients import GradientsAnswer
from service.calls.computing import CallArguments, Computing
from service.calls.definition import Guide
from service.calls.sample import MEAN, feed


class BatchCall(Computing):
    """One graph on many examples.

    The graph is written for one example; the feeds of the leaves in `mapped` have a leading axis N. The values and the
    gradients of each example by itself, in one execution.
    """

    name = "batch"
    position = 8
    request = BatchRequest
    answer = GradientsAnswer
    scalar = True
    guide = Guide("f and ∇f of N inputs", "N times, in one execution", "gradients of each example, many chains")
    examples = {
        "three values of w": MEAN | {"mapped": [0], "feeds": [feed([3, 2], [1.5, -2.0, 0.0, 1.0, 3.0, 4.0])]},
    }

    def call(self, arguments: CallArguments) -> Call:
        """Values and gradients along N."""
        (mapped,) = arguments.get("mapped")
        rest = arguments.get("of", "wrt", "outputs")
        return Batch.of_program(arguments.program, arguments.types, mapped or (), *rest)
