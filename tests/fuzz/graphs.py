"""Random requests: graphs over all ops, with awkward extents, views and functions, and a random call.

The samples of an op show how it may be used: their extents are renamed consistently, its attributes are drawn by name,
and the op itself checks whether that fits. So a new op is drawn from the moment it exists.
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
from tests.fuzz.drawing import MAX_SIZE, Drawing
from tests.fuzz.functions import run_functions
from tests.fuzz.values import Array, Random, choice, mood, numbers

#: extents around lanes, tiles and blocks
EXTENTS: Final = (
    0, 1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000,
)  # fmt: skip
#: extents around the length at which lines are cut into rows, and around tiles
LONG_ROWS: Final = (4095, 4096, 4097)
LINES: Final = (16_384, 20_481)
MOST_RANK: Final = 6
#: the share of graphs with functions, and of their moves that run functions
WITH_FUNCTIONS: Final = 0.4
RUNNING: Final = 0.4
#: calls, with their shares and the most elements of their tensors
CALLS: Final[Mapping[str, tuple[float, int]]] = {
    "forward": (0.22, MAX_SIZE), "gradients": (0.36, MAX_SIZE), "vjp": (0.08, MAX_SIZE),
    "jvp": (0.07, MAX_SIZE), "hvp": (0.06, MAX_SIZE), "batch": (0.08, 2_000), "jacobian": (0.03, 40),
    "hessian": (0.03, 20), "check": (0.02, 100), "plan": (0.02, MAX_SIZE), "differentiate": (0.03, MAX_SIZE),
}  # fmt: skip
#: main dtypes of graphs, with their shares; and the share of ops that are chosen because they take complex numbers
MOSTLY: Final[Mapping[str, float]] = {
    "float32": 0.5, "float64": 0.3, "float16": 0.04, "complex64": 0.08, "complex128": 0.08,
}  # fmt: skip
TAKING: Final = 0.7
_LEAVES: Final = ("input", "parameter")
#: attempts to place an op before another one is drawn
_TRIES: Final = 5


class Request(NamedTuple):
    """A call and its body as a client would send it, with tensors in base64."""

    call: str
    body: dict[str, Any]


# ---------------------------------------------------------------- shapes


def random_shape(rng: Random, most: int) -> tuple[int, ...]:
    """A shape of rank 0 to 6; long lines and long rows are more frequent."""
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
    """An extent of at most `most`; rarely 0."""
    fitting = [candidate for candidate in EXTENTS if candidate <= max(1, most) and (candidate or rng.random() < 0.1)]
    extent: int = choice(rng, fitting)
    return extent


def like(rng: Random, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts with this one, mostly the same one."""
    kept = list(shape)
    if rng.random() < 0.55:
        return tuple(kept)
    kept = [1 if rng.random() < 0.4 else extent for extent in kept]
    return tuple(kept[int(rng.integers(0, len(kept) + 1)) :]) if rng.random() < 0.4 else tuple(kept)


class Renamed(NamedTuple):
    """A renaming of a sample's extents, with leading axes."""

    extents: dict[int, int]
    lead: tuple[int, ...]

    def shape(self, sample_shape: Sequence[int], *, with_lead: bool = True) -> tuple[int, ...]:
        """The renamed shape of a sample's shape."""
        return (*(self.lead if with_lead else ()), *(self.extents.get(extent, extent) for extent in sample_shape))


def renamed(rng: Random, sample: Sample, shape: Sequence[int] | None, most: int) -> Renamed:
    """Rename extents so that the first operand has `shape`, if possible; other extents are random."""
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
    """Ops by kind: elementwise and rowwise ones, views, and all that run no functions."""
    left_out = (*_LEAVES, "get_output")
    free = [op for op in registry().ops.values() if op.name not in left_out and not op.functions]
    in_loops = [op for op in free if isinstance(op, Elementwise)]
    return (
        in_loops,
        [op for op in free if isinstance(op, Rowwise)],
        [op for op in free if isinstance(op, View)],
        free,
    )


def add_op(drawing: Drawing) -> None:
    """Add one more op, on existing nodes or new leaves."""
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
    _tried(drawing, lambda _: run_functions(drawing, add_op))


def _tried(drawing: Drawing, draw: Callable[[int], None]) -> None:
    """Try until an op fits, and remove failed attempts."""
    for attempt in range(_TRIES):
        mark = drawing.mark()
        try:
            draw(attempt)
        except EngineError:
            drawing.cut(mark)
            continue
        return


def place(drawing: Drawing, op: Definition, attempt: int) -> None:
    """Add a node of this op; later attempts are closer to a sample. Raises EngineError if it does not fit."""
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
    """An existing node, usually one of the last; None for a new leaf."""
    rng, kinds = drawing.rng, [operand.kind for operand in sample.operands[:1]]
    candidates = [i for i in drawing.singles() if kinds and fits(drawing.values[i].type, kinds[0], op)]
    if not candidates or rng.random() < 0.1:
        return None
    node: int = choice(rng, candidates[-4:] if rng.random() < 0.7 else candidates)
    return node


def fits(type: TensorType, kind: str, op: Definition) -> bool:
    """Whether a value may be an operand of this kind; complex ones only if the op takes them."""
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
    """Nodes of these shapes: existing ones, or new leaves."""
    nodes: list[int] = []
    for operand, shape in zip(sample.operands, shapes, strict=True):
        kind = operand.kind
        candidates = [
            i for i in drawing.singles() if drawing.shape(i) == shape and fits(drawing.values[i].type, kind, op)
        ]
        same = [
            i for i in candidates if not nodes or drawing.values[i].dtype == drawing.values[nodes[0]].dtype
        ] or candidates
        if not nodes and first is not None and drawing.shape(first) == shape:
            nodes.append(first)
        elif same and operand.kind == "real" and not operand.diagonal and drawing.rng.random() < 0.5:
            nodes.append(choice(drawing.rng, same))
        else:
            high = names.extents.get(int(operand.high), operand.high) if operand.kind == "int" else operand.high
            nodes.append(drawing.drawn(replace(operand, shape=shape, high=max(operand.low + 1, high)), of=op))
    return nodes


# ---------------------------------------------------------------- calls


def random_request(*seed: int) -> Request:
    """The request of this seed, reproducible as long as the registry is the same."""
    rng = np.random.default_rng(seed)
    call: str = choice(rng, CALLS, [share for share, _ in CALLS.values()])
    most = CALLS[call][1]
    dtype = choice(rng, MOSTLY, list(MOSTLY.values()))
    drawing = Drawing(rng, dtype, mood(rng) if call != "check" else "tame", most)
    drawing.running = RUNNING if rng.random() < WITH_FUNCTIONS else 0.0
    drawing.drawn(Operand("real", random_shape(rng, most), -2.0, 2.0), dtype)
    for _ in range(int(rng.integers(1, 12 if most > 100 else 5))):
        add_op(drawing)
    if drawing.running:
        _run(drawing)  # most calls use the last nodes
    return request_for(drawing, call)


def request_for(drawing: Drawing, call: str) -> Request:
    """The request of a call for the drawing; `forward` if nothing is differentiable."""
    rng = drawing.rng
    leaves = [i for i in drawing.floats() if i in drawing.feeds]
    body: dict[str, Any] = {}
    if call in ("jacobian", "hessian"):  # real matrices
        leaves = [i for i in leaves if i in drawing.reals()]
    if not leaves:
        call = "forward"
    if call in ("forward", "plan"):
        body["outputs"] = choose_some(rng, drawing.singles(), 3)
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


def choose_some(rng: Random, nodes: Sequence[int], most: int) -> list[int]:
    """A few of the nodes, usually including the last."""
    chosen = {int(choice(rng, nodes)) for _ in range(int(rng.integers(1, most + 1)))}
    return sorted(chosen | {nodes[-1]} if rng.random() < 0.8 else chosen)


def tensor_of(node: int, array: Array) -> dict[str, Any]:
    """The wire form of a tensor for a node."""
    return {"node": node, "tensor": encode(array, "base64")}


def random_tensor_for(drawing: Drawing, node: int, lead: tuple[int, ...] = ()) -> dict[str, Any]:
    """A random cotangent, tangent or vector for a node."""
    type = drawing.values[node].type
    shape = (*lead, *type.shape)
    return tensor_of(node, numbers(drawing.rng, Operand("real", shape, -1.5, 1.5), type.dtype, drawing.mood))


def scalar(drawing: Drawing) -> int:
    """A real scalar node: a recent float, its sum or mean, or a part or the absolute value of a complex one."""
    last = choice(drawing.rng, drawing.floats()[-2:])
    if drawing.values[last].type.size != 1:
        last = drawing.add(choice(drawing.rng, ["sum", "sum", "mean"]), [last], {})
    if drawing.values[last].type.is_complex:
        last = drawing.add(choice(drawing.rng, ["abs", "real", "imag"]), [last], {})
    return last


def draw_wrt(drawing: Drawing, leaves: Sequence[int]) -> list[int]:
    """The nodes to differentiate with respect to: usually leaves behind the last nodes, sometimes an inner node."""
    behind = set(ancestors(drawing.floats()[-2:], lambda i: drawing.statements[i].operands))
    near = [i for i in leaves if i in behind and drawing.rng.random() < 0.9]
    wrt = choose_some(drawing.rng, near or leaves, 3)
    if drawing.rng.random() < 0.1:
        wrt = sorted({*wrt, choice(drawing.rng, drawing.floats())})
    return wrt


def _gradients(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    wrt = draw_wrt(drawing, leaves)
    if drawing.rng.random() < 0.3:
        of = choice(drawing.rng, drawing.floats()[-3:])
        return {"of": of, "wrt": wrt, "cotangent": random_tensor_for(drawing, of)["tensor"]}
    of = scalar(drawing)
    return {"of": of, "wrt": wrt, "outputs": choose_some(drawing.rng, drawing.singles(), 2)}


def _of_scalar(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    return {"wrt": draw_wrt(drawing, leaves), "of": scalar(drawing)}


def _vjp(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    outputs, batched = choose_some(drawing.rng, drawing.floats(), 2), bool(drawing.rng.random() < 0.4)
    lead = (int(drawing.rng.integers(1, 4)),) if batched else ()
    cotangents = [random_tensor_for(drawing, i, lead) for i in outputs]
    return {"wrt": draw_wrt(drawing, leaves), "outputs": outputs, "cotangents": cotangents, "batched": batched}


def _jvp(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    outputs = choose_some(drawing.rng, drawing.floats(), 2)
    return {"outputs": outputs, "tangents": [random_tensor_for(drawing, i) for i in draw_wrt(drawing, leaves)]}


def _hvp(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    wrt = draw_wrt(drawing, leaves)
    return {"wrt": wrt, "vectors": [random_tensor_for(drawing, i) for i in wrt], "of": scalar(drawing)}


def _jacobian(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    return {"wrt": draw_wrt(drawing, leaves), "outputs": choose_some(drawing.rng, drawing.reals(), 2)}


def _batch(drawing: Drawing, leaves: Sequence[int]) -> dict[str, Any]:
    """Fields for a graph of one example, whose mapped leaves are fed with several."""
    fields = _of_scalar(drawing, leaves)
    count = choice(drawing.rng, [1, 2, 3, 7, 8, 9])
    fields["mapped"] = choose_some(drawing.rng, list(drawing.feeds), 2)
    for i in fields["mapped"]:
        drawing.feeds[i] = np.stack([np.roll(drawing.feeds[i], k) for k in range(count)])
    return fields


_DERIVED: Final = {
    "gradients": _gradients, "vjp": _vjp, "jvp": _jvp, "hvp": _hvp, "jacobian": _jacobian, "hessian": _of_scalar,
    "batch": _batch, "check": _of_scalar, "differentiate": _of_scalar,
}  # fmt: skip
