"""One graph on many examples."""

from __future__ import annotations

from schemas.calls.batch import BatchRequest
from schemas.calls.gradients import GradientsAnswer
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class BatchCall(ComputingDescription):
    """One graph on many examples.

    The graph is written for one example; the feeds of the leaves in `mapped` have a leading axis N. The values and the
    gradients of each example by itself, in one execution; or, with `reduce`, their sum or mean, which is differentiated
    as one, `block` examples at a time. Of a node of several elements there are Jacobians, in graphs since opset 2.
    """

    name = "batch"
    position = 8
    request = BatchRequest
    answer = GradientsAnswer
    scalar = True
    guide = Guide("f and ∇f of N inputs", "N times, in one execution", "gradients of each example, many chains")
    examples = {"three values of w": MEAN | {"mapped": [0], "feeds": [feed([3, 2], [1.5, -2.0, 0.0, 1.0, 3.0, 4.0])]}}
