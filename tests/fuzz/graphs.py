"""Random requests: graphs over all ops, of awkward extents, through views, with functions; and a call that asks.

How an op may be used is read off its samples: their extents are renamed, alike where they are alike, its attributes are
drawn by their names, and the op itself says whether that fits. So an op that is new is drawn from the moment it exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from engine import LATEST, EngineError, TensorType, registry
from engine.ir.graph import ancestors
from engine.ir.op import Definition, View
from engine.ir.sample import Operand, Sample
from engine.ops.elementwise.base import Elementwise
from engine.ops.reduce.sums import Rowwise
from service.api.tensors import encode
from tests.fuzz.attributes import drawn_attributes
from tests.fuzz.drawing import MOST_OF_ONE, Drawing
from tests.fuzz.functions import run_functions
from tests.fuzz.values import Array, Random, choice, mood, numbers

#: around lanes, tiles and blocks
EXTENTS: Final = (
    0, 1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000,
)  # fmt: skip
#: where rows are cut that lie in a line, and where tiles begin
LONG_ROWS: Final = (4095, 4096, 4097)
LINES: Final = (16_384, 20_481)
MOST_RANK: Final = 6
#: how many graphs have functions, and of their moves, those that run some
WITH_FUNCTIONS: Final = 0.4
RUNNING: Final = 0.4
#: calls, how often each is asked, and the elements that it should be asked of at most
CALLS: Final[Mapping[str, tuple[float, int]]] = {
    "forward": (0.22, MOST_OF_ONE), "gradients": (0.36, MOST_OF_ONE), "vjp": (0.08, MOST_OF_ONE),
    "jvp": (0.07, MOST_OF_ONE), "hvp": (0.06, MOST_OF_ONE), "batch": (0.08, 2_000), "jacobian": (0.03, 40),
    "hessian": (0.03, 20), "check": (0.02, 100), "plan": (0.02, MOST_OF_ONE), "differentiate": (0.03, MOST_OF_ONE),
}  # fmt: skip
#: dtypes that most of a graph has, and how often; of its ops, those that are chosen because they take complex numbers
MOSTLY: Final[Mapping[str, float]] = {
    "float32": 0.5, "float64": 0.3, "float16": 0.04, "complex64": 0.08, "complex128": 0.08,
}  # fmt: skip
TAKING: Final = 0.7
_LEAVES: Final = ("input", "parameter")
#: tries to place an op, before another one is drawn
_TRIES: Final = 5


class Request(NamedTuple):
    """A call's name and its body, as a client would send it, its tensors in base64."""

    call: str
    body: dict[str, Any]


# ---------------------------------------------------------------- shapes


def random_shape(rng: Random, most: int) -> tuple[int, ...]:
    """Ranks 0 to 6; lines that are cut into rows and tiles, and long rows, more often than others."""
    kind = rng.random()
    if most > LINES[1] and kind < 0.25:
        return (int(rng.integers(*LINES)),)
    if most > LONG_ROWS[-1] and kind < 0.35:
        columns = choice(rng, LONG_ROWS)
        return (int(rng.integers(1, most // columns + 1)), columns) if rng.random() < 0.7 else (columns,)
    shape: list[int] = []
    for _ in range(int(rng.integers(0, MOST_RANK + 1))):
        shape.append(random_extent(rng, most // math.prod(extent or 1 for extent in shape)))
    return tuple(int(extent) for extent in rng.permutation(shape))


def random_extent(rng: Random, most: int) -> int:
    """One of at most so many; rarely none."""
    fitting = [extent for extent in EXTENTS if extent <= max(1, most) and (extent or rng.random() < 0.1)]
    found: int = choice(rng, fitting)
    return found


def like(rng: Random, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts with this one: mostly the same."""
    kept = list(shape)
    if rng.random() < 0.55:
        return tuple(kept)
    kept = [1 if rng.random() < 0.4 else extent for extent in kept]
    return tuple(kept[int(rng.integers(0, len(kept) + 1)) :]) if rng.random() < 0.4 else tuple(kept)


class Renamed(NamedTuple):
    """Extents of a sample by what stands for them, and axes that come before all others."""

    extents: dict[int, int]
    lead: tuple[int, ...]

    def shape(self, of: Sequence[int], *, with_lead: bool = True) -> tuple[int, ...]:
        """The shape in place of a sample's."""
        return (*(self.lead if with_lead else ()), *(self.extents.get(extent, extent) for extent in of))


def renamed(rng: Random, sample: Sample, shape: Sequence[int] | None, most: int) -> Renamed:
    """So that the first operand has `shape`, as far as it can; else with extents that are drawn."""
    first = sample.operands[0].shape if sample.operands else ()
    extents: dict[int, int] = {}
    lead: tuple[int, ...] = ()
    if shape is not None and len(shape) >= len(first):
        cut = len(shape) - len(first)
        extents, lead = dict(zip(first, shape[cut:], strict=True)), tuple(shape[:cut])
    room = math.prod(extent or 1 for extent in (*extents.values(), *lead))
    for extent in {extent: None for operand in sample.operands for extent in operand.shape}:
        if extent > 1 and extent not in extents:
            extents[extent] = random_extent(rng, min(300, round((most // room) ** 0.6)))
            room *= extents[extent] or 1
    return Renamed(extents, lead)


# ---------------------------------------------------------------- ops


def pools() -> tuple[Sequence[Definition], ...]:
    """Ops by what they are: those that loops are made of, views, and all but those that run functions."""
    left_out = (*_LEAVES, "get_output")
    free = [op for op in registry().ops.values() if op.name not in left_out and not op.functions]
    in_loops = [op for op in free if isinstance(op, Elementwise)]
    return (
        in_loops,
        [op for op in free if isinstance(op, Rowwise)],
        [op for op in free if isinstance(op, View)],
        free,
    )


def grow(drawing: Drawing) -> None:
    """One more op, on what is there or on leaves of its own."""
    if drawing.rng.random() < drawing.running:
        _run(drawing)
        return
    weights = choice(drawing.rng, [[0.5, 0.15, 0.15, 0.2], [0.05, 0.05, 0.1, 0.8]])
    pool = choice(drawing.rng, pools(), weights)
    if np.dtype(drawing.dtype).kind == "c" and drawing.rng.random() < TAKING:
        pool = [op for op in pool if drawing.dtype in op.dtypes] or pool
    op = choice(drawing.rng, pool)
    _tried(drawing, lambda attempt: place(drawing, op, attempt))


def _run(drawing: Drawing) -> None:
    _tried(drawing, lambda _: run_functions(drawing, grow))


def _tried(drawing: Drawing, draw: Callable[[int], None]) -> None:
    """Try until it fits; nothing is left of what did not."""
    for attempt in range(_TRIES):
        mark = drawing.mark()
        try:
            draw(attempt)
        except EngineError:
            drawing.cut(mark)
            continue
        return


def place(drawing: Drawing, op: Definition, attempt: int) -> None:
    """A node of this op; the later the attempt, the nearer to a sample. Raises EngineError where it does not fit."""
    rng = drawing.rng
    sample: Sample = choice(rng, op.samples)
    first = first_operand(drawing, op, sample) if attempt < _TRIES - 2 else None
    names, shapes = Renamed({}, ()), [operand.shape for operand in sample.operands]
    if isinstance(op, Elementwise) and shapes:
        lead = random_shape(rng, drawing.most) if first is None else drawing.shape(first)
        shapes = [lead, *(like(rng, lead) for _ in shapes[1:])]
    elif attempt < _TRIES - 1:
        names = renamed(rng, sample, None if first is None else drawing.shape(first), drawing.most)
        shapes = [
            shape if operand.kind == "words" else names.shape(shape, with_lead=not k or rng.random() < 0.5)
            for k, (operand, shape) in enumerate(zip(sample.operands, shapes, strict=True))
        ]
    attrs = drawn_attributes(rng, op, sample, shapes[0] if shapes else (), names.extents, attempt < _TRIES - 2)
    node = drawing.add(op.name, operands_of(drawing, op, sample, shapes, first, names), attrs)
    if op.several:
        count = len(drawing.values[node].node.types)
        for index in {int(rng.integers(count)) for _ in range(2)}:
            drawing.add("get_output", [node], {"index": index})


def first_operand(drawing: Drawing, op: Definition, sample: Sample) -> int | None:
    """A node that is there, one of the last as a rule; None for a leaf of its own."""
    rng, kinds = drawing.rng, [operand.kind for operand in sample.operands[:1]]
    there = [i for i in drawing.singles() if kinds and fits(drawing.values[i].type, kinds[0], op)]
    if not there or rng.random() < 0.1:
        return None
    found: int = choice(rng, there[-4:] if rng.random() < 0.7 else there)
    return found


def fits(type: TensorType, kind: str, op: Definition) -> bool:
    """Whether a value may be an operand of this kind of the op: a complex one, where it takes these."""
    if kind == "words":
        return type.dtype.name == "uint32"
    if kind == "real":
        return type.dtype.kind == "f" or (type.is_complex and type.dtype.name in op.dtypes)
    return type.dtype.kind == {"int": "i", "bool": "b"}[kind]


def operands_of(
    drawing: Drawing,
    op: Definition,
    sample: Sample,
    shapes: Sequence[tuple[int, ...]],
    first: int | None,
    names: Renamed,
) -> list[int]:
    """Nodes of these shapes: of those that are there, or leaves."""
    found: list[int] = []
    for operand, shape in zip(sample.operands, shapes, strict=True):
        kind = operand.kind
        there = [i for i in drawing.singles() if drawing.shape(i) == shape and fits(drawing.values[i].type, kind, op)]
        same = [i for i in there if not found or drawing.values[i].dtype == drawing.values[found[0]].dtype] or there
        if not found and first is not None and drawing.shape(first) == shape:
            found.append(first)
        elif same and operand.kind == "real" and not operand.diagonal and drawing.rng.random() < 0.5:
            found.append(choice(drawing.rng, same))
        else:
            high = names.extents.get(int(operand.high), operand.high) if operand.kind == "int" else operand.high
            found.append(drawing.drawn(replace(operand, shape=shape, high=max(operand.low + 1, high)), of=op))
    return found


# ---------------------------------------------------------------- calls


def random_request(*seed: int) -> Request:
    """The request of this seed: the same every time, as long as the registry is the same."""
    rng = np.random.default_rng(seed)
    call: str = choice(rng, CALLS, [share for share, _ in CALLS.values()])
    most = CALLS[call][1]
    dtype = choice(rng, MOSTLY, list(MOSTLY.values()))
    drawing = Drawing(rng, dtype, mood(rng) if call != "check" else "tame", most)
    drawing.running = RUNNING if rng.random() < WITH_FUNCTIONS else 0.0
    drawing.drawn(Operand("real", random_shape(rng, most), -2.0, 2.0), dtype)
    for _ in range(int(rng.integers(1, 12 if most > 100 else 5))):
        grow(drawing)
    if drawing.running:
        _run(drawing)  # the last nodes are what most calls are about
    return asked(drawing, call)


def asked(drawing: Drawing, call: str) -> Request:
    """The drawing under a call; what has no derivatives, or nothing to take them by, under `forward`."""
    rng = drawing.rng
    leaves = [i for i in drawing.floats() if i in drawing.feeds]
    body: dict[str, Any] = {}
    if call in ("jacobian", "hessian"):  # matrices of real numbers
        leaves = [i for i in leaves if i in drawing.reals()]
    if not leaves:
        call = "forward"
    if call in ("forward", "plan"):
        body["outputs"] = some(rng, drawing.singles(), 3)
    else:
        body |= _DERIVED[call](drawing, leaves)
    body["graph"] = {"opset": LATEST, "nodes": drawing.nodes}
    if drawing.functions.stated:
        body["graph"]["functions"] = drawing.functions.stated
    if call in ("plan", "differentiate"):
        typed = [(node, array) for node, array in drawing.feeds.items()]
        body["types"] = [{"node": i, "dtype": a.dtype.name, "shape": list(a.shape)} for i, a in typed]
    else:
        body["feeds"] = [tensor_of(i, array) for i, array in drawing.feeds.items()]
    return Request(call, body)


def some(rng: Random, nodes: Sequence[int], most: int) -> list[int]:
    """A few of them, the last among them as a rule."""
    found = {int(choice(rng, nodes)) for _ in range(int(rng.integers(1, most + 1)))}
    return sorted(found | {nodes[-1]} if rng.random() < 0.8 else found)


def tensor_of(node: int, array: Array) -> dict[str, Any]:
    """A tensor for a node."""
    return {"node": node, "tensor": encode(array, "base64")}


def noise(drawing: Drawing, node: int, lead: tuple[int, ...] = ()) -> dict[str, Any]:
    """A cotangent, tangent or vector of a node."""
    type = drawing.values[node].type
    shape = (*lead, *type.shape)
    return tensor_of(node, numbers(drawing.rng, Operand("real", shape, -1.5, 1.5), type.dtype, drawing.mood))


def scalar(drawing: Drawing) -> int:
    """A real node of one element: the last float one, or its sum or mean; of a complex one, a part or the size."""
    last = choice(drawing.rng, drawing.floats()[-2:])
    if drawing.values[last].type.size != 1:
        last = drawing.add(choice(drawing.rng, ["sum", "sum", "mean"]), [last], {})
    if drawing.values[last].type.is_complex:
        last = drawing.add(choice(drawing.rng, ["abs", "real", "imag"]), [last], {})
    return last


def by(drawing: Drawing, leaves: Sequence[int]) -> list[int]:
    """What to differentiate by: leaves that the last nodes depend on, as a rule; now and then a node in the middle."""
    behind = set(ancestors(drawing.floats()[-2:], lambda i: drawing.statements[i].operands))
    near = [i for i in leaves if i in behind and drawing.rng.random() < 0.9]
    found = some(drawing.rng, near or leaves, 3)
    if drawing.rng.random() < 0.1:
        found = sorted({*found, choice(drawing.rng, drawing.floats())})
    return found


def _gradients(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    wrt = by(drawing, leaves)
    if drawing.rng.random() < 0.3:
        of = choice(drawing.rng, drawing.floats()[-3:])
        return {"of": of, "wrt": wrt, "cotangent": noise(drawing, of)["tensor"]}
    of = scalar(drawing)
    return {"of": of, "wrt": wrt, "outputs": some(drawing.rng, drawing.singles(), 2)}


def _of_scalar(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    return {"wrt": by(drawing, leaves), "of": scalar(drawing)}


def _vjp(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    outputs, batched = some(drawing.rng, drawing.floats(), 2), bool(drawing.rng.random() < 0.4)
    lead = (int(drawing.rng.integers(1, 4)),) if batched else ()
    cotangents = [noise(drawing, i, lead) for i in outputs]
    return {"wrt": by(drawing, leaves), "outputs": outputs, "cotangents": cotangents, "batched": batched}


def _jvp(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    outputs = some(drawing.rng, drawing.floats(), 2)
    return {"outputs": outputs, "tangents": [noise(drawing, i) for i in by(drawing, leaves)]}


def _hvp(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    wrt = by(drawing, leaves)
    return {"wrt": wrt, "vectors": [noise(drawing, i) for i in wrt], "of": scalar(drawing)}


def _jacobian(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    return {"wrt": by(drawing, leaves), "outputs": some(drawing.rng, drawing.reals(), 2)}


def _batch(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    """Of a graph that is drawn for one example: what is mapped is fed with several."""
    found = _of_scalar(drawing, leaves)
    count = choice(drawing.rng, [1, 2, 3, 7, 8, 9])
    found["mapped"] = some(drawing.rng, list(drawing.feeds), 2)
    for i in found["mapped"]:
        drawing.feeds[i] = np.stack([np.roll(drawing.feeds[i], k) for k in range(count)])
    return found


_DERIVED: Final = {
    "gradients": _gradients, "vjp": _vjp, "jvp": _jvp, "hvp": _hvp, "jacobian": _jacobian, "hessian": _of_scalar,
    "batch": _batch, "check": _of_scalar, "differentiate": _of_scalar,
}  # fmt: skip
