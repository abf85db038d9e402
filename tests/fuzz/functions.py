"""Ops that run functions, drawn: what they run is drawn as graphs are, and may run functions itself.

A body is a drawing of its own, of the operands that are chosen for it. Its results have to be of certain types, such as
those of carries: a value that is there and has the type, or one that is brought to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from engine import OverBudget, TensorType
from engine.ir.sample import Operand
from tests.fuzz.drawing import Drawing
from tests.fuzz.values import choice

#: draws one more op
Grow = Callable[[Drawing], None]
#: levels of functions that are drawn
MOST_DEPTH: Final = 3
#: steps of loops, and entries that are gone through; more of them where no loop is around
LENGTHS: Final = (0, 1, 1, 2, 3, 3, 5)
LONG: Final = (8, 17, 33)
#: elements of what a function computes at once
_MOST_INSIDE: Final = 2_000


def run_functions(drawing: Drawing, grow: Grow) -> None:
    """One more op that runs functions, and some of its results. Raises EngineError where it does not fit."""
    if drawing.depth >= MOST_DEPTH:
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
    operands = [*_drawn_with(drawing, body), *consts, *carries]
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
    predicate, given = _flag(drawing), _chosen(drawing, choice(drawing.rng, [1, 2]))
    then = drawing.within(_types(drawing, given))
    _grown(then, grow)
    results = _chosen(then, choice(drawing.rng, [1, 2]))
    operands = [*_drawn_with(drawing, then), *given]
    otherwise = drawing.within(_types(drawing, operands), closed=True)
    _grown(otherwise, grow)
    others = [_as_type(otherwise, type) for type in _types(then, results)]
    attrs = {"then": then.as_function(results), "otherwise": otherwise.as_function(others)}
    return drawing.add("cond", [predicate, *operands], attrs)


def _call(drawing: Drawing, grow: Grow) -> int:
    given = _chosen(drawing, choice(drawing.rng, [1, 2, 3]))
    body = drawing.within(_types(drawing, given))
    _grown(body, grow)
    results = _chosen(body, choice(drawing.rng, [1, 2]))
    operands = [*_drawn_with(drawing, body), *given]
    attrs = {"recompute": bool(drawing.rng.random() < 0.5)}
    if drawing.rng.random() < 0.2:
        attrs["derivative"] = _derivative(_types(drawing, operands), _types(body, results), drawing, grow)
    return drawing.add("call", operands, {**attrs, "body": body.as_function(results)})


def _derivative(types: Sequence[TensorType], results: Sequence[TensorType], drawing: Drawing, grow: Grow) -> int:
    """One that need not be true: it is what is asked for."""
    cotangents = [type if type.is_differentiable else type.with_dtype(np.dtype("float64")) for type in results]
    found = drawing.within([*types, *results, *cotangents], closed=True)
    _grown(found, grow)
    return found.as_function([_as_type(found, type) for type in types if type.is_differentiable])


def _fixed_point(drawing: Drawing, grow: Grow) -> int:
    """x = y + sin(x + y) / 4, for a y that is drawn of the consts alone: of any x, one comes near to the end."""
    floats = [i for i in drawing.floats() if drawing.values[i].type.size <= _MOST_INSIDE]
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
    """A node of an op that has one function, of operands that may be consts in front of others."""
    operands = [*_drawn_with(drawing, body), *operands]
    return drawing.add(op, operands, {**attrs, "body": body.as_function(results)})


# ---------------------------------------------------------------- operands


def _drawn_with(drawing: Drawing, body: Drawing) -> list[int]:
    """Nodes for the inputs that a body has beside what it was given."""
    return [drawing.leaf(array) for array in body.feeds.values()]


def _types(drawing: Drawing, nodes: Sequence[int]) -> list[TensorType]:
    return [drawing.values[i].type for i in nodes]


def _chosen(drawing: Drawing, count: int) -> list[int]:
    """So many values that are not too large: the last ones as a rule."""
    there = [i for i in drawing.singles() if drawing.values[i].type.size <= _MOST_INSIDE]
    if count and not there:
        raise OverBudget("nothing that is there is small enough")
    return [int(choice(drawing.rng, there[-4:] if drawing.rng.random() < 0.7 else there)) for _ in range(count)]


def _carries(drawing: Drawing) -> list[int]:
    """None, one or two values to begin with; now and then a number of steps among them."""
    found = _chosen(drawing, choice(drawing.rng, [0, 1, 1, 1, 2]))
    if drawing.rng.random() < 0.15:
        found.append(drawing.add("constant", [], {"value": np.array(choice(drawing.rng, [0, 3]))}))
    return found


def _length(drawing: Drawing) -> int:
    lengths = LENGTHS if drawing.depth else LENGTHS + LONG
    found: int = choice(drawing.rng, lengths)
    return found


def _sequence(drawing: Drawing, length: int) -> int:
    """A value of so many entries: one that is there, or numbers."""
    there = [i for i in drawing.singles() if drawing.shape(i)[:1] == (length,)]
    if there and drawing.rng.random() < 0.7:
        return int(choice(drawing.rng, there))
    shape = choice(drawing.rng, [(), (1,), (3,), (17,), (2, 8), *map(drawing.shape, _chosen(drawing, 1))])
    return drawing.drawn(Operand("real", (length, *shape), -2.0, 2.0))


def _entry(type: TensorType) -> TensorType:
    return type.with_shape(type.shape[1:])


# ---------------------------------------------------------------- bodies


def _grown(body: Drawing, grow: Grow) -> None:
    """Some ops of what is passed."""
    body.most = _MOST_INSIDE
    if not body.nodes:
        body.drawn(Operand("real", choice(body.rng, [(), (3,), (2, 9)]), -2.0, 2.0))
    for _ in range(int(body.rng.integers(1, 5))):
        grow(body)


def _as_type(body: Drawing, type: TensorType) -> int:
    """A result of this type: one that was computed, or another that is brought to it; floats small, as a rule."""
    there = [i for i in body.singles() if body.values[i].type == type]
    computed = [i for i in there if body.nodes[i]["op"] != "input"]
    if body.rng.random() < 0.7 and computed:
        found = int(choice(body.rng, computed[-3:]))
    else:
        found = _brought(body, body.singles()[-1], type)
    if type.is_differentiable and body.rng.random() < 0.6:
        found = body.add(choice(body.rng, ["tanh", "sin", "sigmoid"]), [found], {})
    if type.is_differentiable and there and body.rng.random() < 0.4:
        before = body.add("mul_scalar", [there[0]], {"scalar": choice(body.rng, [0.5, 0.9, -0.25])})
        found = body.add("add", [before, found], {})
    return found


def _brought(body: Drawing, node: int, type: TensorType) -> int:
    """What a value comes down to, everywhere in a tensor of this type."""
    if body.values[node].type.is_complex and not type.is_complex:
        node = body.add("abs", [node], {})
    if body.values[node].dtype != type.dtype:
        node = body.add("cast", [node], {"dtype": type.dtype.name})
    if body.shape(node) == type.shape:
        return node
    if body.shape(node):
        ordered = body.values[node].type.size and not type.is_complex
        node = body.add("max" if ordered else "sum", [node], {})
    if body.values[node].dtype != type.dtype:  # a sum of flags counts them
        node = body.add("cast", [node], {"dtype": type.dtype.name})
    return body.add("broadcast_to", [node], {"shape": list(type.shape)})


def _flag(drawing: Drawing) -> int:
    """A bool []: one that is there, one that does not change, or whether the last number is small."""
    there = [i for i in drawing.singles() if drawing.values[i].type == TensorType((), np.dtype("bool"))]
    kind = drawing.rng.random()
    if there and kind < 0.3:
        return int(choice(drawing.rng, there))
    if kind < 0.4:
        return drawing.add("constant", [], {"value": np.array(kind < 0.35)})
    node = _brought(drawing, int(choice(drawing.rng, drawing.singles()[-3:])), TensorType((), np.dtype("float64")))
    return drawing.add("less", [node, drawing.add("full", [], {"fill": choice(drawing.rng, [0.5, 3.0, -0.5])})], {})


def _condition(drawing: Drawing, types: Sequence[TensorType], grow: Grow) -> Drawing:
    found = drawing.within(types, closed=True)
    if drawing.rng.random() < 0.3:
        _grown(found, grow)
    return found
