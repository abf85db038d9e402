"""Random ops that run functions, whose bodies are random graphs, and may run functions themselves.

A body is a drawing of its own, of the operands chosen for it. Its results must have certain types, such as those of
carries: a result is an existing value of the type, or a value converted to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from engine import OverBudget, TensorType
from engine.ir.sample import Operand
from tests.fuzz.drawing import Drawing
from tests.fuzz.values import choice

#: adds one more op to a drawing
Grow = Callable[[Drawing], None]
#: deepest nesting of functions
MAX_DEPTH: Final = 3
#: steps of loops and lengths of sequences; longer ones outside of other loops
LENGTHS: Final = (0, 1, 1, 2, 3, 3, 5)
LONG: Final = (8, 17, 33)
#: most elements of a value in a function
_MAX_BODY_ELEMENTS: Final = 2_000


def run_functions(drawing: Drawing, grow: Grow) -> None:
    """Add one more op that runs functions, and some of its results. Raises EngineError if it does not fit."""
    if drawing.depth >= MAX_DEPTH:
        raise OverBudget("the drawing has functions deep enough")
    draw: Callable[[Drawing, Grow], int] = choice(drawing.rng, list(_OPS), list(_OPS.values()))
    node = draw(drawing, grow)
    count = len(drawing.values[node].node.types)
    for index in {int(drawing.rng.integers(count)) for _ in range(3)}:
        drawing.add("get_output", [node], {"index": index})


# ---------------------------------------------------------------- the ops


def _scan(drawing: Drawing, grow: Grow) -> int:
    carries, length = _carries(drawing), _length(drawing)
    sequences = [_sequence(drawing, length) for _ in range(choice(drawing.rng, [0, 0, 1, 2]))]
    consts = _chosen(drawing, choice(drawing.rng, [0, 1, 2]))
    entries = [_entry(drawing.values[i].type) for i in sequences]
    body = drawing.within([*_types(drawing, [*consts, *carries]), *entries])
    _grown(body, grow)
    results = [_as_type(body, type) for type in _types(drawing, carries)]
    results += _chosen(body, choice(drawing.rng, [0, 1, 2]) if carries else 1)
    attrs = {"carries": len(carries), "sequences": len(sequences), "reverse": bool(drawing.rng.random() < 0.4)}
    if not sequences or drawing.rng.random() < 0.3:
        attrs["length"] = length
    return _run(drawing, "scan", body, results, [*consts, *carries, *sequences], attrs)


def _while(drawing: Drawing, grow: Grow) -> int:
    carries, consts = _carries(drawing) or _chosen(drawing, 1), _chosen(drawing, choice(drawing.rng, [0, 1]))
    body = drawing.within(_types(drawing, [*consts, *carries]))
    _grown(body, grow)
    results = [_as_type(body, type) for type in _types(drawing, carries)]
    operands = [*_own_inputs(drawing, body), *consts, *carries]
    condition = _condition(drawing, _types(drawing, operands), grow)
    attrs = {
        "condition": condition.as_function([_flag(condition)]),
        "body": body.as_function(results),
        "carries": len(carries),
        "max_steps": _length(drawing),
    }
    return drawing.add("while", operands, attrs)


def _map(drawing: Drawing, grow: Grow) -> int:
    length = _length(drawing)
    sequences = [_sequence(drawing, length) for _ in range(choice(drawing.rng, [1, 1, 2]))]
    consts = _chosen(drawing, choice(drawing.rng, [0, 1, 2]))
    body = drawing.within([*_types(drawing, consts), *[_entry(drawing.values[i].type) for i in sequences]])
    _grown(body, grow)
    attrs = {"sequences": len(sequences)}
    if drawing.rng.random() < 0.6:
        attrs["at_once"] = choice(drawing.rng, [1, 2, 3, 100])
    return _run(drawing, "map", body, _chosen(body, choice(drawing.rng, [1, 2])), [*consts, *sequences], attrs)


def _cond(drawing: Drawing, grow: Grow) -> int:
    predicate, operands = _flag(drawing), _chosen(drawing, choice(drawing.rng, [1, 2]))
    then = drawing.within(_types(drawing, operands))
    _grown(then, grow)
    results = _chosen(then, choice(drawing.rng, [1, 2]))
    all_operands = [*_own_inputs(drawing, then), *operands]
    otherwise = drawing.within(_types(drawing, all_operands), closed=True)
    _grown(otherwise, grow)
    others = [_as_type(otherwise, type) for type in _types(then, results)]
    attrs = {"then": then.as_function(results), "otherwise": otherwise.as_function(others)}
    return drawing.add("cond", [predicate, *all_operands], attrs)


def _call(drawing: Drawing, grow: Grow) -> int:
    operands = _chosen(drawing, choice(drawing.rng, [1, 2, 3]))
    body = drawing.within(_types(drawing, operands))
    _grown(body, grow)
    results = _chosen(body, choice(drawing.rng, [1, 2]))
    all_operands = [*_own_inputs(drawing, body), *operands]
    attrs = {"recompute": bool(drawing.rng.random() < 0.5)}
    if drawing.rng.random() < 0.2:
        attrs["derivative"] = _derivative(_types(drawing, all_operands), _types(body, results), drawing, grow)
    return drawing.add("call", all_operands, {**attrs, "body": body.as_function(results)})


def _derivative(types: Sequence[TensorType], results: Sequence[TensorType], drawing: Drawing, grow: Grow) -> int:
    """A random derivative, which need not be right: the caller declares it."""
    cotangents = [type if type.is_differentiable else type.with_dtype(np.dtype("float64")) for type in results]
    derivative = drawing.within([*types, *results, *cotangents], closed=True)
    _grown(derivative, grow)
    return derivative.as_function([_as_type(derivative, type) for type in types if type.is_differentiable])


def _fixed_point(drawing: Drawing, grow: Grow) -> int:
    """x = y + sin(x + y) / 4, for a random y of the consts alone, which converges from any x."""
    floats = [i for i in drawing.floats() if drawing.values[i].type.size <= _MAX_BODY_ELEMENTS]
    if not floats:
        raise OverBudget("nothing to begin with is small enough")
    first, consts = choice(drawing.rng, floats[-4:]), _chosen(drawing, choice(drawing.rng, [1, 2]))
    type = drawing.values[first].type
    body = drawing.within(_types(drawing, consts))
    _grown(body, grow)
    y = body.add("tanh", [_as_type(body, type)], {})
    x = body.input(type)
    turned = body.add("sin", [body.add("add", [x, y], {})], {})
    results = [body.add("add", [y, body.add("mul_scalar", [turned], {"scalar": 0.25})], {})]
    tolerance = {"float64": 1e-13, "float32": 1e-5}.get(type.dtype.name, 1e-2)
    steps = choice(drawing.rng, [0, 1, 40, 40, 40, 40])
    attrs = {"carries": 1, "tolerance": tolerance, "max_steps": steps}
    return _run(drawing, "fixed_point", body, results, [*consts, first], attrs)


_OPS: Final[Mapping[Callable[[Drawing, Grow], int], float]] = {
    _scan: 0.34, _while: 0.18, _map: 0.16, _cond: 0.12, _call: 0.12, _fixed_point: 0.08,
}  # fmt: skip


def _run(
    drawing: Drawing,
    op: str,
    body: Drawing,
    results: Sequence[int],
    operands: Sequence[int],
    attrs: Mapping[str, object],
) -> int:
    """Add a node of an op that has one function, with the inputs of the body in front of the operands."""
    operands = [*_own_inputs(drawing, body), *operands]
    return drawing.add(op, operands, {**attrs, "body": body.as_function(results)})


# ---------------------------------------------------------------- operands


def _own_inputs(drawing: Drawing, body: Drawing) -> list[int]:
    """Nodes for the inputs of a body that were drawn with it."""
    return [drawing.leaf(array) for array in body.feeds.values()]


def _types(drawing: Drawing, nodes: Sequence[int]) -> list[TensorType]:
    return [drawing.values[i].type for i in nodes]


def _chosen(drawing: Drawing, count: int) -> list[int]:
    """Choose `count` values that are not too large, usually among the last ones."""
    candidates = [i for i in drawing.singles() if drawing.values[i].type.size <= _MAX_BODY_ELEMENTS]
    if count and not candidates:
        raise OverBudget("nothing that is there is small enough")
    return [
        int(choice(drawing.rng, candidates[-4:] if drawing.rng.random() < 0.7 else candidates)) for _ in range(count)
    ]


def _carries(drawing: Drawing) -> list[int]:
    """Zero to two initial carries, sometimes with a counter of steps."""
    carries = _chosen(drawing, choice(drawing.rng, [0, 1, 1, 1, 2]))
    if drawing.rng.random() < 0.15:
        carries.append(drawing.add("constant", [], {"value": np.array(choice(drawing.rng, [0, 3]))}))
    return carries


def _length(drawing: Drawing) -> int:
    lengths = LENGTHS if drawing.depth else LENGTHS + LONG
    length: int = choice(drawing.rng, lengths)
    return length


def _sequence(drawing: Drawing, length: int) -> int:
    """A sequence of this length: an existing value, or random numbers."""
    candidates = [i for i in drawing.singles() if drawing.shape(i)[:1] == (length,)]
    if candidates and drawing.rng.random() < 0.7:
        return int(choice(drawing.rng, candidates))
    shape = choice(drawing.rng, [(), (1,), (3,), (17,), (2, 8), *map(drawing.shape, _chosen(drawing, 1))])
    return drawing.drawn(Operand("real", (length, *shape), -2.0, 2.0))


def _entry(type: TensorType) -> TensorType:
    return type.with_shape(type.shape[1:])


# ---------------------------------------------------------------- bodies


def _grown(body: Drawing, grow: Grow) -> None:
    """Add some ops to a body."""
    body.most = _MAX_BODY_ELEMENTS
    if not body.nodes:
        body.drawn(Operand("real", choice(body.rng, [(), (3,), (2, 9)]), -2.0, 2.0))
    for _ in range(int(body.rng.integers(1, 5))):
        grow(body)


def _as_type(body: Drawing, type: TensorType) -> int:
    """A result of this type: a computed value, or one converted to it; floats are usually small."""
    candidates = [i for i in body.singles() if body.values[i].type == type]
    computed = [i for i in candidates if body.nodes[i]["op"] != "input"]
    if body.rng.random() < 0.7 and computed:
        result = int(choice(body.rng, computed[-3:]))
    else:
        result = _converted(body, body.singles()[-1], type)
    if type.is_differentiable and body.rng.random() < 0.6:
        result = body.add(choice(body.rng, ["tanh", "sin", "sigmoid"]), [result], {})
    if type.is_differentiable and candidates and body.rng.random() < 0.4:
        before = body.add("mul_scalar", [candidates[0]], {"scalar": choice(body.rng, [0.5, 0.9, -0.25])})
        result = body.add("add", [before, result], {})
    return result


def _converted(body: Drawing, node: int, type: TensorType) -> int:
    """Reduce a value to a scalar, and broadcast it to this type."""
    if body.values[node].type.is_complex and not type.is_complex:
        node = body.add("abs", [node], {})
    if body.values[node].dtype != type.dtype:
        node = body.add("cast", [node], {"dtype": type.dtype.name})
    if body.shape(node) == type.shape:
        return node
    if body.shape(node):
        ordered = body.values[node].type.size and not type.is_complex
        node = body.add("max" if ordered else "sum", [node], {})
    if body.values[node].dtype != type.dtype:  # a sum of flags is a count
        node = body.add("cast", [node], {"dtype": type.dtype.name})
    return body.add("broadcast_to", [node], {"shape": list(type.shape)})


def _flag(drawing: Drawing) -> int:
    """A bool scalar: an existing one, a constant, or a comparison of a recent value."""
    candidates = [i for i in drawing.singles() if drawing.values[i].type == TensorType((), np.dtype("bool"))]
    kind = drawing.rng.random()
    if candidates and kind < 0.3:
        return int(choice(drawing.rng, candidates))
    if kind < 0.4:
        return drawing.add("constant", [], {"value": np.array(kind < 0.35)})
    node = _converted(drawing, int(choice(drawing.rng, drawing.singles()[-3:])), TensorType((), np.dtype("float64")))
    return drawing.add("less", [node, drawing.add("full", [], {"fill": choice(drawing.rng, [0.5, 3.0, -0.5])})], {})


def _condition(drawing: Drawing, types: Sequence[TensorType], grow: Grow) -> Drawing:
    condition = drawing.within(types, closed=True)
    if drawing.rng.random() < 0.3:
        _grown(condition, grow)
    return condition
