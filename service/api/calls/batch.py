"""Call `batch`: one graph on many examples."""

from __future__ import annotations

from schemas.calls.batch import BatchRequest
from schemas.calls.gradients import GradientsAnswer
from service.api.calls.description import MEAN, ComputingDescription, Guide, feed


class BatchCall(ComputingDescription):
    """Compute values and gradients for many examples

    Write the graph for one example. The feeds of the leaves in `mapped` have a leading axis N. The server computes the
    values and gradients of each example in one execution. With `reduce`, it returns their sum or mean, and accumulates
    `block` examples at a time. Since opset 2, `of` may have several elements: the gradients are then Jacobians.
    """

    name = "batch"
    position = 8
    request = BatchRequest
    answer = GradientsAnswer
    scalar = True
    guide = Guide("f and ∇f for N inputs", "N times, in one execution", "per-example gradients, many Markov chains")
    examples = {
        "gradients at three values of w": MEAN
        | {"mapped": [0], "feeds": [feed([3, 2], [1.5, -2.0, 0.0, 1.0, 3.0, 4.0])]}
    }
