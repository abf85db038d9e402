"""Warm-up: a first plan takes twice as long as later ones, so a process makes some before its first request."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np

from engine.graph.errors import EngineError
from engine.graph.limits import Limits
from engine.graph.op import Definition
from engine.graph.opset import LATEST
from engine.graph.program import Program
from engine.graph.registry import Registry
from engine.graph.sample import Sample
from engine.graph.statement import Statement
from engine.graph.tensor_type import TensorType
from engine.planning.compiler import Compiler

#: of the ops, one in so many is planned: after these the first plan of any other takes what it takes after all of them
ONE_OF: Final = 8


def warm(registry: Registry) -> None:
    """Plan a sample of some ops, and gradients where there are any: some 50 ms, of which the plans are not kept.

    Of opset 1: some later ones ask LAPACK or have SciPy transform, which takes half a second and 25 MB to load, in
    workers that may never need it.
    """
    for op in [op for op in registry.ops.values() if op.samples and op.since == 1][::ONE_OF]:
        _plan(registry, op, op.samples[0])


def _plan(registry: Registry, op: Definition, sample: Sample) -> None:
    random, count = np.random.default_rng(0), len(sample.operands)
    types = {i: TensorType.of(operand.draw(random, "float32")) for i, operand in enumerate(sample.operands)}
    nodes = [Statement(registry.ops["input"]) for _ in types]
    nodes.append(Statement(op, tuple(range(count)), sample.attrs))
    if op.several:
        nodes.append(Statement(registry.ops["get_output"], (count,), {"index": 0}))
    nodes.append(Statement(registry.ops["sum"], (len(nodes) - 1,)))
    program, compiler = Program(registry, nodes, opset=LATEST), Compiler(Limits())
    compiler.forward(program, types)
    with suppress(EngineError):  # what has no derivatives says so
        compiler.gradients(program, types, wrt=[i for i, type in types.items() if type.is_differentiable])
