"""Loops and branches as the server runs them: `scan`, `map`, `while_loop`, `fixed_point`, `cond` and `call`.

Functions are called once, with arrays that have no values, and are written into the graph once, whatever the steps.
What they read of the function around them is passed to them. Trees are arrays and numbers in tuples, lists and dicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gradserve_client.recording.arguments import LeafType
from gradserve_client.recording.bodies import Arrays, Body, Kind, arrays_of, run, type_of
from gradserve_client.recording.emitting import BOOL, DEFAULT_FLOAT, DEFAULT_INT, FLOATING, lifted
from gradserve_client.recording.lines import RecordingError, users_line
from gradserve_client.recording.recorder import Traced

Tree = Any
#: of loops that may end early, behind their carries: how many steps ran, and whether it was not the bound that ended it
_ENDED: Final = [LeafType(DEFAULT_INT, ()), LeafType(BOOL, ())]


def scan(
    f: Callable[[Tree, Tree], tuple[Tree, Tree]],
    init: Tree,
    xs: Tree = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Tree, Tree]:
    """f(carry, x) → carry, y, for one entry of xs after the other: the last carry, and all y stacked.

    `length` is needed where there are no xs. With `reverse` the last entry comes first; each y stays at its entry.
    """
    carry, sequences = arrays_of(init), arrays_of(xs)
    steps = _steps("scan", sequences, length)
    body = Body(f, carry.kind, _entries(sequences))
    if not isinstance(body.result, tuple) or len(body.result) != 2:
        raise _refused("scan", "its function gives back the next carry, and what is stacked: None for nothing")
    after, ys = body.arrays(body.result[0], carry.arrays), body.arrays(body.result[1])
    _check_carry("scan", carry, after)
    made = run(
        "scan",
        {"body": (body, [*after.arrays, *ys.arrays])},
        [*carry.arrays, *sequences.arrays],
        [*carry.types, *_stacks(ys, steps)],
        carries=len(carry.arrays),
        sequences=len(sequences.arrays),
        length=None if sequences.arrays else steps,
        reverse=reverse or None,
    )
    many = len(carry.arrays)
    return carry.kind.built(made[:many]), ys.kind.built(made[many:])


def map(f: Callable[[Tree], Tree], xs: Tree, *, at_once: int | None = None) -> Tree:
    """f of each entry of xs, in no order, stacked. `at_once` are computed in one batch; by default as many as fit."""
    sequences = arrays_of(xs)
    steps = _steps("map", sequences, None)
    body = Body(f, _entries(sequences))
    ys = body.arrays(body.result)
    stacks = _stacks(ys, steps)
    bodies = {"body": (body, ys.arrays)}
    made = run("map", bodies, sequences.arrays, stacks, sequences=len(sequences.arrays), at_once=at_once)
    return ys.kind.built(made)


def while_loop(
    cond: Callable[[Tree], Any], body: Callable[[Tree], Tree], init: Tree, *, max_steps: int
) -> tuple[Tree, Traced, Traced]:
    """body(carry), again and again while cond(carry) holds, at most so often: carry, steps and whether it is finished.

    It is not where the bound has ended it.
    """
    carry = arrays_of(init)
    holds, step = Body(cond, carry.kind), Body(body, carry.kind)
    condition, after = holds.arrays(holds.result), step.arrays(step.result, carry.arrays)
    if condition.types != [LeafType(BOOL, ())]:
        told = ", ".join(array.told for array in condition.arrays) or "no array"
        raise _refused("while_loop", f"its condition gives back one bool, and not {told}")
    _check_carry("while_loop", carry, after)
    bodies = {"condition": (holds, condition.arrays), "body": (step, after.arrays)}
    return _until("while", bodies, carry, max_steps=max_steps)


def fixed_point(
    body: Callable[[Tree], Tree], init: Tree, *, tolerance: float, max_steps: int
) -> tuple[Tree, Traced, Traced]:
    """x = body(x) until max |Δx| ≤ tolerance · (1 + max |x|), at most so often: x, steps and whether it is finished.

    The gradient is implicit: of the point, and not of the way to it.
    """
    x = arrays_of(init)
    for path, array in zip(x.paths, x.arrays, strict=True):
        if array.dtype.kind != "f":
            raise _refused("fixed_point", f"x{path} is {array.told}: a point is of floats")
    step = Body(body, x.kind)
    after = step.arrays(step.result, x.arrays)
    _check_carry("fixed_point", x, after)
    return _until("fixed_point", {"body": (step, after.arrays)}, x, tolerance=tolerance, max_steps=max_steps)


def cond(pred: Any, then: Callable[..., Tree], otherwise: Callable[..., Tree], *operands: Tree) -> Tree:
    """then(*operands) where pred, one bool, holds, else otherwise(*operands): of equal types. Only one of them runs."""
    predicate = lifted(pred)
    if type_of(predicate) != LeafType(BOOL, ()):
        raise _refused("cond", f"chooses by one bool, and not by {predicate.told}")
    given = [arrays_of(operand) for operand in operands]
    first, second = (Body(each, *(operand.kind for operand in given)) for each in (then, otherwise))
    one = first.arrays(first.result)
    other = second.arrays(second.result, one.arrays)
    _check_alike("cond", one, other, "one function gives back {}, and the other {}: both give back the same types")
    bodies = {"then": (first, one.arrays), "otherwise": (second, other.arrays)}
    passed = [array for operand in given for array in operand.arrays]
    return one.kind.built(run("cond", bodies, passed, one.types, first=[predicate]))


def call(
    f: Callable[..., Tree],
    *operands: Tree,
    derivative: Callable[[Tree, Tree, Tree], Tree] | None = None,
    recompute: bool = False,
) -> Tree:
    """f(*operands). With `recompute` nothing inside is kept for the way back, which computes it once more.

    derivative(operands, result, cotangents), where it is given, is differentiated by in place of f: it gives back a
    cotangent for each float of the operands, which are a tuple. Then neither function reads what it is not given.
    """
    given = arrays_of(operands)
    body = Body(lambda passed: f(*passed), given.kind)
    result = body.arrays(body.result)
    bodies = {"body": (body, result.arrays)}
    if derivative is not None:
        bodies["derivative"] = _derivative(derivative, given, result, body)
    return result.kind.built(run("call", bodies, given.arrays, result.types, recompute=recompute or None))


def _derivative(
    function: Callable[[Tree, Tree, Tree], Tree], given: Arrays, result: Arrays, body: Body
) -> tuple[Body, list[Traced]]:
    """A function's own derivative, and its cotangents: those of integers and bools are zeros of float64."""
    cotangents = [each if each.dtype.kind in FLOATING else LeafType(DEFAULT_FLOAT, each.shape) for each in result.types]
    made = Body(function, given.kind, result.kind, Kind(cotangents, result.structure))
    if body.consts or made.consts:
        told = [*body.consts, *made.consts][0].told
        raise _refused("call", f"with a derivative of its own, a function reads what it is given, and {told} it is not")
    floats = [array for array in given.arrays if array.dtype.kind in FLOATING]
    outputs = made.arrays(made.result, floats)
    if outputs.types != [type_of(array) for array in floats]:
        wanted, got = (", ".join(array.told for array in arrays) or "nothing" for arrays in (floats, outputs.arrays))
        raise _refused("call", f"its derivative gives back a cotangent for each float operand, {wanted}, and not {got}")
    return made, outputs.arrays


def _until(op: str, bodies: Any, carry: Arrays, **attrs: Any) -> tuple[Tree, Traced, Traced]:
    """A loop that ends by itself."""
    *last, steps, finished = run(op, bodies, carry.arrays, [*carry.types, *_ENDED], carries=len(carry.arrays), **attrs)
    return carry.kind.built(last), steps, finished


def _entries(sequences: Arrays) -> Kind:
    """One entry of each."""
    return Kind([LeafType(each.dtype, each.shape[1:]) for each in sequences.types], sequences.structure)


def _stacks(ys: Arrays, steps: int) -> list[LeafType]:
    return [LeafType(each.dtype, (steps, *each.shape)) for each in ys.types]


def _steps(op: str, sequences: Arrays, length: int | None) -> int:
    """How many entries there are to go through."""
    for path, array in zip(sequences.paths, sequences.arrays, strict=True):
        if not array.ndim:
            raise _refused(op, f"xs{path} is {array.told}, and has no axis to go along")
    extents = {array.shape[0] for array in sequences.arrays} | ({length} if length is not None else set())
    if len(extents) > 1:
        told = ", ".join(str(extent) for extent in sorted(extents))
        raise _refused(op, f"xs and length disagree on the steps: {told}")
    if not extents:
        raise _refused(
            op, "without xs, the length says how many steps there are" if op == "scan" else "xs has no array"
        )
    return int(extents.pop())


def _check_carry(op: str, before: Arrays, after: Arrays) -> None:
    _check_alike(op, before, after, "the carry begins as {}, and becomes {}: it keeps dtype, shape and structure")


def _check_alike(op: str, one: Arrays, other: Arrays, sentence: str) -> None:
    """Raise RecordingError where two trees differ, in a sentence about what differs."""
    if one.structure != other.structure:
        raise _refused(op, sentence.format(_told(one.kind), _told(other.kind)))
    for path, x, y in zip(one.paths, one.arrays, other.arrays, strict=True):
        if type_of(x) != type_of(y):
            at = f" at {path}" if path else ""
            raise _refused(op, sentence.format(f"{x.told}{at}", y.told))


def _told(kind: Kind) -> str:
    """A tree as messages have it."""
    return str(kind.structure.build(iter(f"{each.dtype.name}{list(each.shape)}" for each in kind.types))).replace(
        "'", ""
    )


def _refused(op: str, reason: str) -> RecordingError:
    return RecordingError(f"{op} ({users_line()}): {reason}")
