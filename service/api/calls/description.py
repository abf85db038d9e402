"""Descriptions of calls, from which routes, the OpenAPI document, tests and the guide are generated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

Json = dict[str, Any]


class Guide:
    """Row of a call in the guide (Markdown): what it returns, its approximate cost, and when to use it."""

    def __init__(self, answers: str, costs: str, ask_for: str, page: str = "") -> None:
        self.answers = answers
        self.costs = costs
        self.ask_for = ask_for
        #: page of the guide about the call; by default the one with its name
        self.page = page


class CallDescription:
    """A call, `POST /v1/NAME`. The docstring of a subclass is published: a summary (no full stop), then a paragraph.

    A subclass lives in one file under `service.api.calls`, where discovery finds it. Its messages live in a file under
    `schemas.calls`. It must not import the engine, since the front-end process loads it. Its execution is a class under
    `service.workers.executions`, which only workers load.
    """

    name: ClassVar[str]
    #: position in the documentation's lists
    position: ClassVar[int] = 100
    #: group in the OpenAPI document
    tag: ClassVar[str] = "compute"
    #: types of its messages
    request: ClassVar[type]
    answer: ClassVar[type]
    #: roles of tensors that may be sent in binary form, beside the JSON of a request
    roles: ClassVar[tuple[str, ...]] = ("feeds", "constants")
    #: fields of a request that hold tensors, if only these may differ between similar requests
    tensor_fields: ClassVar[tuple[str, ...]] = ()
    #: examples of requests, by description; examples of failing ones are derived from the first
    examples: ClassVar[Mapping[str, Json]]
    #: whether it differentiates, and if so, whether it differentiates one scalar node, by default the last
    differentiates: ClassVar[bool] = True
    scalar: ClassVar[bool] = False
    guide: ClassVar[Guide]


class ComputingDescription(CallDescription):
    """A call that runs a graph."""

    #: roles of tensors that it takes in addition to feeds, in fields of the same names
    extra_roles: ClassVar[tuple[str, ...]] = ()
    #: fields that hold one additional tensor each
    extra_fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.roles = ("feeds", "constants", *cls.extra_roles)
        # in the order of `Computation.tensors`
        cls.tensor_fields = ("feeds", *cls.extra_roles, *cls.extra_fields)


def feed(shape: list[int], data: list[float], node: int = 0, dtype: str = "float64") -> Json:
    """Return a feed for a node."""
    return {"node": node, "tensor": {"dtype": dtype, "shape": shape, "data": data}}


W: Final[Json] = {"op": "parameter", "name": "w"}
NODES: Final[list[Json]] = [W, {"op": "square", "operands": [0]}, {"op": "mean", "operands": [1]}]
#: requests with a value of w, and with the type of w instead
MEAN: Final[Json] = {"graph": {"nodes": NODES}, "feeds": [feed([2], [1.5, -2.0])]}
TYPED: Final[Json] = {"graph": {"nodes": NODES}, "types": [{"node": 0, "dtype": "float64", "shape": [2]}]}
