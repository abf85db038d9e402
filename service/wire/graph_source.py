"""Graphs as they came, and the cache of their programs."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from engine import Program
from engine.planning.cache import Cache
from engine.planning.pause import collector_paused
from schemas import Graph
from service.wire.json_codec import parse_json
from service.wire.translate import Translator
from service.wire.validation import validate

#: bytes that a program holds for each of its nodes beside tensors, and for each function, as counted in CPython
NODE_BYTES: Final = 600
FUNCTION_BYTES: Final = 800


class GraphSource:
    """A graph's JSON, and what it is known by: equal names stand for equal texts."""

    def __init__(self, name: Hashable, text: bytes, depth: int) -> None:
        """`depth` bounds its nesting."""
        self.name = name
        self.text = text
        self._depth = depth

    @cached_property
    def graph(self) -> Graph:
        """The graph. Raises Refusal."""
        with collector_paused():
            return validate(Graph, parse_json(self.text, self._depth, "the graph"), ("graph",))


class Known(NamedTuple):
    """A program, and the text that it was read from."""

    program: Program
    text: bytes

    @property
    def nbytes(self) -> int:
        """Estimate the bytes that both take."""
        parts = (self.program, *self.program.functions)
        attrs = (value for part in parts for attrs in part.attrs for value in attrs.values())
        tensors = sum(value.nbytes for value in attrs if isinstance(value, np.ndarray))
        return NODE_BYTES * self.program.size + FUNCTION_BYTES * (len(parts) - 1) + tensors + len(self.text)


class Programs:
    """The programs of graphs that were seen lately, by name: at most `capacity`, of at most `nbytes` in all."""

    def __init__(self, translator: Translator, capacity: int, nbytes: int, depth: int) -> None:
        """`depth` bounds the nesting of their texts."""
        self._translator = translator
        self._depth = depth
        self._kept: Cache[Known] = Cache(capacity, nbytes, lambda known: known.nbytes)

    def source(self, name: Hashable, text: bytes) -> GraphSource:
        """A graph of this name and text."""
        return GraphSource(name, text, self._depth)

    def known(self, name: Hashable) -> GraphSource | None:
        """The graph of this name, where its program is there: so it was found to be right before."""
        known = self._kept.find(name)
        return None if known is None else self.source(name, known.text)

    def of(self, source: GraphSource) -> Program:
        """The program that a graph stands for. Raises Refusal and EngineError."""
        known, _ = self._kept.get(source.name, lambda: self._read_graph(source))
        return known.program

    def _read_graph(self, source: GraphSource) -> Known:
        with collector_paused():
            return Known(self._translator.program(source.graph, {}), source.text)
