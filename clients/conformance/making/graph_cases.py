"""Cases of graph builders: every op by its own samples, numbers that are easily lost, and invalid steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from clients.conformance.bits import Json, bits_of
from clients.conformance.cases import Case
from clients.conformance.steps import leaf, nodes_of, on
from engine import registry
from engine.ir.op import Definition
from engine.ir.sample import Sample

_INPUT: Final = {"error": {"type": "input"}}
#: kinds of attributes whose numbers may be written with or without a decimal point
_NUMBERS: Final = frozenset({"float", "number"})
#: integers beyond this are strings in a case
_EXACT: Final = 2**53


def graph_cases() -> Iterator[Case]:
    """Yield all cases."""
    for op in registry().ops.values():
        for number, sample in enumerate(_distinct_samples(op)):
            yield _of_steps(f"op-{op.name}-{number}", steps_of(op, sample))
    for name, steps in _handwritten().items():
        yield _of_steps(name, steps)
    for name, steps in _invalid().items():
        yield {"id": f"build-{name}", "kind": "build", "steps": steps, "want": _INPUT}


def _distinct_samples(op: Definition) -> list[Sample]:
    """Return the samples that have an attribute, or a number of operands, that no earlier sample has."""
    seen: set[object] = set()
    samples = []
    for sample in op.samples:
        features = {*sample.attrs, len(sample.operands)}
        if features - seen:
            samples.append(sample)
        seen |= features
    return samples


def steps_of(op: Definition, sample: Sample) -> list[Json]:
    """Return the leaves, the op, and, if it has several results, the first two."""
    leaves: list[Json] = [{"op": "input"} for _ in sample.operands]
    step: Json = {"op": op.name}
    if leaves:
        step["operands"] = list(range(len(leaves)))
    if sample.attrs:
        step["attrs"] = {name: _stated(op, name, value) for name, value in sample.attrs.items()}
    first: Json = {"op": "get_output", "operands": [len(leaves)], "attrs": {"index": 0}}
    return [*leaves, step, *([first, first | {"attrs": {"index": 1}}] if op.several else [])]


def _stated(op: Definition, name: str, value: Any) -> Any:
    """Return an attribute of a sample as a case states it."""
    if isinstance(value, np.ndarray | np.generic):
        return bits_of(np.asarray(value))
    if op.attrs[name].kind in _NUMBERS:
        return float(value)
    return list(value) if isinstance(value, tuple) else value


def _of_steps(name: str, steps: Sequence[Json]) -> Case:
    want = {"nodes": json.dumps(nodes_of(steps))}
    return {"id": f"build-{name}", "kind": "build", "steps": list(steps), "want": want}


def _constant(values: Any, dtype: str) -> Json:
    return {"op": "constant", "attrs": {"value": bits_of(np.array(values, dtype))}}


def _full_of(whole: int) -> Json:
    return {"op": "full", "attrs": {"shape": [2], "fill": {"int": str(whole)}, "dtype": "int64"}}


def _handwritten() -> dict[str, list[Json]]:
    """Return graphs that no sample covers."""
    return {
        "leaf-names": [leaf("input", "x"), leaf("parameter", "wéight → “w”"), leaf("input", 'a\tb\\"c')],
        "leaf-types": [
            leaf("input", dtype="float32", shape=[2, -1]),
            leaf("parameter", "w", dtype="bool", shape=[3]),
        ],
        "leaf-zero-d": [leaf("input", dtype="float64", zero_d=True)],
        "leaf-shape-alone": [leaf("parameter", shape=[4, 4])],
        "named-nodes": [leaf("input"), on("tanh", 0) | {"name": "squashed"}, on("sum", 1) | {"name": "loss"}],
        "the-same-twice": [leaf("input"), on("tanh", 0), on("tanh", 0), on("mul", 1, 2), on("mul", 1, 1)],
        "gradient-of-a-gradient": [leaf("parameter"), on("square", 0), on("grad", 1, 0), on("grad", 2, 0)],
        "weighted-gradient": [leaf("input"), on("tanh", 0), leaf("input"), on("grad", 1, 0, 2)],
        "many-operands": [*(leaf("input") for _ in range(7)), on("cat", *range(7), axis=0)],
        "unknown-op": [leaf("input"), on("an_op_of_tomorrow", 0, scale=2.5, names=["a", "b"], exact=True)],
        "unknown-leaf": [leaf("a_leaf_of_tomorrow", shape=[2])],
        "another-spelling": [leaf("input"), on("MULTIPLY", 0, 0)],
        "minus-zero": [leaf("input"), on("mul_scalar", 0, scalar=-0.0)],
        "smallest-number": [leaf("input"), on("mul_scalar", 0, scalar=5e-324)],
        "largest-number": [leaf("input"), on("mul_scalar", 0, scalar=-1.7976931348623157e308)],
        "seventeen-digits": [leaf("input"), on("mul_scalar", 0, scalar=0.1 + 0.2)],
        "number-without-a-fraction": [leaf("input"), on("mul_scalar", 0, scalar=1e22)],
        "whole-2-to-53-and-1": [_full_of(_EXACT + 1)],
        "whole-2-to-63-less-1": [_full_of(2**63 - 1)],
        "whole-minus-2-to-63": [_full_of(-(2**63))],
        "open-slice": [leaf("input"), on("slice", 0, starts=[1], stops=[{"int": str(2**63 - 1)}])],
        "shape-empty": [leaf("input"), on("reshape", 0, shape=[])],
        "shape-counted": [leaf("input"), on("reshape", 0, shape=[-1, 3])],
        "axes-negative": [leaf("input"), on("sum", 0, axes=[-1, 0], keepdims=True)],
        "flag-at-its-default": [leaf("input"), on("sum", 0, axes=[0], keepdims=False)],
        "constant-nan": [_constant([np.nan, -0.0, np.inf], "float64")],
        "constant-large-integers": [_constant([2**63 - 1, -(2**63), 2**53 + 1], "int64")],
        "constant-empty": [_constant(np.zeros((0, 3)), "float32")],
        "constant-zero-d": [_constant(2.5, "float16")],
        "constant-bool": [_constant([[True, False]], "bool")],
        "constant-words": [_constant([0, 2**32 - 1], "uint32")],
        "constant-complex": [_constant([1 - 2j, -0.0, 0.5j], "complex64")],
        "constant-complex-nan": [_constant([complex(0, np.nan), complex(-np.inf, -0.0)], "complex128")],
        "constant-complex-zero-d": [_constant(2.5 - 1j, "complex128")],
        "constant-int16": [_constant([0, 2**15 - 1, -(2**15)], "int16")],
        "leaf-of-complex-numbers": [
            leaf("parameter", "z", dtype="complex64", shape=[2]),
            on("cast", 0, dtype="complex128"),
            leaf("input", "n", dtype="int16"),
        ],
        "leaf-of-words": [leaf("parameter", "key", dtype="uint32", shape=[2]), on("cast", 0, dtype="uint32")],
        "constant-large": [_constant(np.arange(600.0), "float64")],
    }


def _invalid() -> dict[str, list[Json]]:
    """Return graphs that a client refuses before it sends anything."""
    two = [leaf("input"), leaf("input")]
    return {
        "refused-node-of-another-graph": [leaf("input"), on("tanh", "other")],
        "refused-second-operand-of-another-graph": [leaf("input"), on("add", 0, "other")],
        "refused-one-of-many-of-another-graph": [*two, on("cat", 0, 1, "other", axis=0)],
        "refused-other-in-a-gradient": [leaf("parameter"), on("sum", 0), on("grad", 1, "other")],
        "refused-other-in-an-unknown-op": [leaf("input"), on("an_op_of_tomorrow", "other")],
        "refused-nan": [leaf("input"), on("mul_scalar", 0, scalar={"float": "nan"})],
        "refused-infinity": [leaf("input"), on("add_scalar", 0, scalar={"float": "inf"})],
        "refused-minus-infinity": [leaf("input"), on("clamp", 0, min={"float": "-inf"})],
        "refused-nan-of-an-unknown-op": [leaf("input"), on("an_op_of_tomorrow", 0, scale={"float": "nan"})],
        "refused-constant-dtype": [{"op": "constant", "attrs": {"value": _unsendable("bfloat16", [1], 2)}}],
        "refused-constant-shape": [{"op": "constant", "attrs": {"value": _unsendable("float64", [3], 16)}}],
    }


def _unsendable(dtype: str, shape: list[int], count: int) -> Json:
    return {"dtype": dtype, "shape": shape, "hex": "00" * count}
