"""Graphs as they came, and the programs that they stand for: no text is parsed and checked twice."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Final

import numpy as np

from engine import Program
from engine.planning.cache import Cache
from schemas import Graph
from service.wire.json_codec import parse_json
from service.wire.translate import Translator
from service.wire.validation import validate

#: bytes that a program holds for each of its nodes beside tensors, as counted in CPython
NODE_BYTES: Final = 600


class GraphSource:
    """A graph's JSON, and what it is known by: equal names stand for equal texts."""

    def __init__(self, name: Hashable, text: bytes, depth: int) -> None:
        """`depth` bounds its nesting."""
        self.name = name
        self._text = text
        self._depth = depth

    @cached_property
    def graph(self) -> Graph:
        """The graph. Raises Refusal."""
        return validate(Graph, parse_json(self._text, self._depth, "the graph"), ("graph",))


class Programs:
    """The programs of graphs that were seen lately, by name: at most `capacity`, of at most `nbytes` in all."""

    def __init__(self, translator: Translator, capacity: int, nbytes: int) -> None:
        self._translator = translator
        self._kept: Cache[Program] = Cache(capacity, nbytes, program_bytes)

    def knows(self, name: Hashable) -> bool:
        """Whether there is the program of this graph, so that its text was found right before."""
        return self._kept.find(name) is not None

    def of(self, source: GraphSource) -> Program:
        """The program that a graph stands for. Raises Refusal and EngineError."""
        program, _ = self._kept.get(source.name, lambda: self._translator.program(source.graph, {}))
        return program


def program_bytes(program: Program) -> int:
    """What keeping a program takes, about."""
    tensors = (value for attrs in program.attrs for value in attrs.values() if isinstance(value, np.ndarray))
    return NODE_BYTES * len(program.statements) + sum(tensor.nbytes for tensor in tensors)
