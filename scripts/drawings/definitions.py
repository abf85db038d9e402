"""Ops that are composed of several nodes, drawn as these nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import numpy as np

from engine import LATEST, Graph, Program, Statement, TensorType, registry
from engine.ir.op import Definition
from engine.ir.sample import Sample
from scripts.drawings.drawn import Drawn, of_nodes

FOLDER: Final = "drawings/ops"


@cache
def definitions() -> Mapping[str, Drawn]:
    """Return the drawings of composite ops by name, each for its first sample with more than one node."""
    drawings = ((op.name, _definition(op)) for op in registry().ops.values() if op.is_composite)
    return {name: drawn for name, drawn in drawings if drawn is not None}


def _definition(op: Definition) -> Drawn | None:
    for graph, names in _written(op):
        if sum(not node.is_leaf for node in graph.nodes) > 1:
            return Drawn(f"{FOLDER}/{op.name}", f"{op.name}, as it is defined", of_nodes(graph, names))
    return None


def _written(op: Definition) -> Iterator[tuple[Graph, Mapping[int, str]]]:
    """Yield the graph of the op on each of its samples, and the names of its operands."""
    for sample in op.samples:
        count = len(sample.operands)
        leaves = [Statement(registry().ops["input"], (), {})] * count
        program = Program(registry(), [*leaves, Statement(op, tuple(range(count)), sample.attrs)], opset=LATEST)
        builder, values = program.build(dict(enumerate(_types(sample))), [count])
        yield builder.graph([values[count]]), {i: op.operand_name(i) for i in range(count)}


def _types(sample: Sample) -> Iterator[TensorType]:
    for operand in sample.operands:
        yield TensorType.of(operand.draw(np.random.default_rng(0)))
