"""A process's first plan takes several times as long as the next ones; this makes it before anybody waits for it."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from engine.graph.errors import EngineError
from engine.graph.limits import Limits
from engine.graph.op import Definition
from engine.graph.program import Program, Statement
from engine.graph.registry import Registry
from engine.graph.sample import Sample
from engine.graph.tensor_type import TensorType
from engine.planning.compiler import Compiler


def warm(registry: Registry) -> None:
    """Plan a sample of every op, and its gradients where it has any: some 50 ms, of which the plans are not kept."""
    for op in registry.ops.values():
        for sample in op.samples[:1]:
            _plan(registry, op, sample)


def _plan(registry: Registry, op: Definition, sample: Sample) -> None:
    random, count = np.random.default_rng(0), len(sample.operands)
    types = {i: TensorType.of(operand.draw(random, "float32")) for i, operand in enumerate(sample.operands)}
    nodes = [Statement(registry.ops["input"]) for _ in types]
    nodes.append(Statement(op, tuple(range(count)), sample.attrs))
    if op.several:
        nodes.append(Statement(registry.ops["get_output"], (count,), {"index": 0}))
    nodes.append(Statement(registry.ops["sum"], (len(nodes) - 1,)))
    program, compiler = Program(registry, nodes), Compiler(Limits())
    compiler.forward(program, types)
    with suppress(EngineError):  # what has no derivatives says so
        compiler.gradients(program, types, wrt=[i for i, type in types.items() if type.is_differentiable])
