"""Loops and branches that run on the server: `scan`, `map`, `while_loop`, `fixed_point`, `cond` and `call`.

Callbacks are called once, with arrays that have no values, and are written into the graph once, whatever the number of
steps. Arrays of the enclosing function that they use are passed to them by the op. Trees are arrays and numbers in
tuples, lists and dicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gradserve_client.recording.arguments import LeafType
from gradserve_client.recording.bodies import ArrayTree, Body, TreeType, flatten_arrays, run, type_of
from gradserve_client.recording.emitting import BOOL, DEFAULT_FLOAT, DEFAULT_INT, FLOATING, lift
from gradserve_client.recording.lines import RecordingError, users_line
from gradserve_client.recording.recorder import Traced

Tree = Any
#: the last results of loops that may end early: the number of steps, and whether the loop ended before the bound
_LOOP_STATUS: Final = [LeafType(DEFAULT_INT, ()), LeafType(BOOL, ())]


def scan(
    f: Callable[[Tree, Tree], tuple[Tree, Tree]],
    init: Tree,
    xs: Tree = None,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Tree, Tree]:
    """Run `carry, y = f(carry, x)` for each entry of `xs`; return the last carry and the stacked ys.

    Entries are taken along the leading axis of the arrays of `xs`. `f` must return a carry with the structure, dtypes
    and shapes of `init`. Each stacked y has the number of steps as its leading axis. `length` is required if `xs` has
    no arrays. With `reverse=True`, the loop runs from the last entry to the first; each y is still stacked at the
    position of its entry. As `jax.lax.scan`.

    Raises RecordingError if the carry changes its type, or if leading extents differ.
    """
    carry, sequences = flatten_arrays(init), flatten_arrays(xs)
    steps = _count_steps("scan", sequences, length)
    body = Body(f, carry.tree_type, _entry_type(sequences))
    if not isinstance(body.result, tuple) or len(body.result) != 2:
        raise _error(
            "scan", "its function must return the next carry and the values to stack, or None to stack nothing"
        )
    next_carry, ys = body.arrays(body.result[0], carry.arrays), body.arrays(body.result[1])
    _check_carry("scan", carry, next_carry)
    results = run(
        "scan",
        {"body": (body, [*next_carry.arrays, *ys.arrays])},
        [*carry.arrays, *sequences.arrays],
        [*carry.types, *_stacked_types(ys, steps)],
        carries=len(carry.arrays),
        sequences=len(sequences.arrays),
        length=None if sequences.arrays else steps,
        reverse=reverse or None,
    )
    carry_count = len(carry.arrays)
    return carry.tree_type.build(results[:carry_count]), ys.tree_type.build(results[carry_count:])


def map(f: Callable[[Tree], Tree], xs: Tree, *, at_once: int | None = None) -> Tree:
    """Apply `f` to each entry of `xs` along the leading axis, in any order; return the stacked results.

    `at_once` entries are computed in one batch, by default as many as fit. As `jax.lax.map`.
    """
    sequences = flatten_arrays(xs)
    steps = _count_steps("map", sequences, None)
    body = Body(f, _entry_type(sequences))
    ys = body.arrays(body.result)
    result_types = _stacked_types(ys, steps)
    bodies = {"body": (body, ys.arrays)}
    results = run("map", bodies, sequences.arrays, result_types, sequences=len(sequences.arrays), at_once=at_once)
    return ys.tree_type.build(results)


def while_loop(
    cond: Callable[[Tree], Any], body: Callable[[Tree], Tree], init: Tree, *, max_steps: int
) -> tuple[Tree, Traced, Traced]:
    """Run `carry = body(carry)` while `cond(carry)` holds; return (carry, steps, finished).

    `steps`, an int64 scalar, is the number of steps that ran, at most `max_steps`. `finished`, a bool scalar, is False
    if the loop was stopped by `max_steps`. `cond` must return one bool; `body` must return a carry with the structure,
    dtypes and shapes of `init`.

    Raises RecordingError if they do not.
    """
    carry = flatten_arrays(init)
    condition_body, step_body = Body(cond, carry.tree_type), Body(body, carry.tree_type)
    condition, next_carry = (
        condition_body.arrays(condition_body.result),
        step_body.arrays(step_body.result, carry.arrays),
    )
    if condition.types != [LeafType(BOOL, ())]:
        received = ", ".join(array.type_name for array in condition.arrays) or "no array"
        raise _error("while_loop", f"its condition must return one bool, not {received}")
    _check_carry("while_loop", carry, next_carry)
    bodies = {"condition": (condition_body, condition.arrays), "body": (step_body, next_carry.arrays)}
    return _early_ending_loop("while", bodies, carry, max_steps=max_steps)


def fixed_point(
    body: Callable[[Tree], Tree], init: Tree, *, tolerance: float, max_steps: int
) -> tuple[Tree, Traced, Traced]:
    """Iterate `x = body(x)` until max |Δx| ≤ tolerance · (1 + max |x|); return (x, steps, finished).

    `x` is a tree of floats. `steps`, an int64 scalar, is the number of steps that ran, at most `max_steps`. `finished`,
    a bool scalar, is False if the iteration did not converge. The gradient is implicit: that of the fixed point, not of
    the iterations; `init` has none.
    """
    x = flatten_arrays(init)
    for path, array in zip(x.paths, x.arrays, strict=True):
        if array.dtype.kind != "f":
            raise _error("fixed_point", f"x{path} must be of floats, not {array.type_name}")
    step_body = Body(body, x.tree_type)
    next_x = step_body.arrays(step_body.result, x.arrays)
    _check_carry("fixed_point", x, next_x)
    return _early_ending_loop(
        "fixed_point", {"body": (step_body, next_x.arrays)}, x, tolerance=tolerance, max_steps=max_steps
    )


def cond(pred: Any, then: Callable[..., Tree], otherwise: Callable[..., Tree], *operands: Tree) -> Tree:
    """Return `then(*operands)` if `pred` is true, else `otherwise(*operands)`. Only one of them runs.

    `pred` is one bool. Both functions must return the same structure, dtypes and shapes. Raises RecordingError if they
    do not.
    """
    predicate = lift(pred)
    if type_of(predicate) != LeafType(BOOL, ()):
        raise _error("cond", f"the predicate must be one bool, not {predicate.type_name}")
    operand_trees = [flatten_arrays(operand) for operand in operands]
    then_body, otherwise_body = (
        Body(each, *(operand.tree_type for operand in operand_trees)) for each in (then, otherwise)
    )
    then_result = then_body.arrays(then_body.result)
    otherwise_result = otherwise_body.arrays(otherwise_body.result, then_result.arrays)
    _check_same_types(
        "cond",
        then_result,
        otherwise_result,
        "one function returns {}, but the other {}: both must return the same types",
    )
    bodies = {"then": (then_body, then_result.arrays), "otherwise": (otherwise_body, otherwise_result.arrays)}
    arrays = [array for operand in operand_trees for array in operand.arrays]
    return then_result.tree_type.build(run("cond", bodies, arrays, then_result.types, first=[predicate]))


def call(
    f: Callable[..., Tree],
    *operands: Tree,
    derivative: Callable[[Tree, Tree, Tree], Tree] | None = None,
    recompute: bool = False,
) -> Tree:
    """Return `f(*operands)`, run as a function of the graph, with an optional derivative or checkpointing.

    With `recompute=True`, no intermediate results are stored for the backward pass, which computes them again.

    `derivative(operands, result, cotangents)` replaces the derivative of `f`. `operands` is a tuple; `cotangents` has
    the structure of the result. It must return one cotangent for each float or complex array of the operands. With it,
    neither function may use arrays of the enclosing function. As `jax.custom_vjp`.

    Raises RecordingError if the cotangents have other types, or if a function uses arrays of the enclosing function.
    """
    operand_tree = flatten_arrays(operands)
    body = Body(lambda passed: f(*passed), operand_tree.tree_type)
    result = body.arrays(body.result)
    bodies = {"body": (body, result.arrays)}
    if derivative is not None:
        bodies["derivative"] = _derivative(derivative, operand_tree, result, body)
    return result.tree_type.build(run("call", bodies, operand_tree.arrays, result.types, recompute=recompute or None))


def _derivative(
    function: Callable[[Tree, Tree, Tree], Tree], operand_tree: ArrayTree, result: ArrayTree, body: Body
) -> tuple[Body, list[Traced]]:
    """Record a custom derivative. Return its body with its outputs.

    The cotangents of integer and bool results are zeros of float64.
    """
    cotangents = [each if each.dtype.kind in FLOATING else LeafType(DEFAULT_FLOAT, each.shape) for each in result.types]
    derivative = Body(function, operand_tree.tree_type, result.tree_type, TreeType(cotangents, result.structure))
    if body.consts or derivative.consts:
        captured = [*body.consts, *derivative.consts][0].type_name
        raise _error(
            "call", f"a function with its own derivative can read only its operands, but {captured} is not one of them"
        )
    floats = [array for array in operand_tree.arrays if array.dtype.kind in FLOATING]
    outputs = derivative.arrays(derivative.result, floats)
    if outputs.types != [type_of(array) for array in floats]:
        expected, received = (
            ", ".join(array.type_name for array in arrays) or "nothing" for arrays in (floats, outputs.arrays)
        )
        raise _error(
            "call", f"its derivative must return a cotangent for each float operand, {expected}, not {received}"
        )
    return derivative, outputs.arrays


def _early_ending_loop(op: str, bodies: Any, carry: ArrayTree, **attrs: Any) -> tuple[Tree, Traced, Traced]:
    """Append a loop that may end before `max_steps`, and return the last carry, the number of steps, and finished."""
    *last, steps, finished = run(
        op, bodies, carry.arrays, [*carry.types, *_LOOP_STATUS], carries=len(carry.arrays), **attrs
    )
    return carry.tree_type.build(last), steps, finished


def _entry_type(sequences: ArrayTree) -> TreeType:
    """Return the type of one entry of each sequence."""
    return TreeType([LeafType(each.dtype, each.shape[1:]) for each in sequences.types], sequences.structure)


def _stacked_types(ys: ArrayTree, steps: int) -> list[LeafType]:
    return [LeafType(each.dtype, (steps, *each.shape)) for each in ys.types]


def _count_steps(op: str, sequences: ArrayTree, length: int | None) -> int:
    """Return the number of steps. Raises RecordingError if sequences and `length` disagree, or if there are neither."""
    for path, array in zip(sequences.paths, sequences.arrays, strict=True):
        if not array.ndim:
            raise _error(op, f"xs{path} is {array.type_name}, which has no axis to iterate over")
    extents = {array.shape[0] for array in sequences.arrays} | ({length} if length is not None else set())
    if len(extents) > 1:
        counts = ", ".join(str(extent) for extent in sorted(extents))
        raise _error(op, f"xs and length disagree on the number of steps: {counts}")
    if not extents:
        raise _error(
            op, "pass length, the number of steps, if there are no xs" if op == "scan" else "xs contains no array"
        )
    return int(extents.pop())


def _check_carry(op: str, before: ArrayTree, after: ArrayTree) -> None:
    _check_same_types(
        op, before, after, "the carry begins as {}, but becomes {}: it must keep dtype, shape and structure"
    )


def _check_same_types(op: str, one: ArrayTree, other: ArrayTree, sentence: str) -> None:
    """Raise RecordingError if two trees differ. `sentence` has a placeholder for each."""
    if one.structure != other.structure:
        raise _error(op, sentence.format(_describe(one.tree_type), _describe(other.tree_type)))
    for path, x, y in zip(one.paths, one.arrays, other.arrays, strict=True):
        if type_of(x) != type_of(y):
            location = f" at {path}" if path else ""
            raise _error(op, sentence.format(f"{x.type_name}{location}", y.type_name))


def _describe(tree_type: TreeType) -> str:
    """Return a tree as error messages show it."""
    return str(
        tree_type.structure.build(iter(f"{each.dtype.name}{list(each.shape)}" for each in tree_type.types))
    ).replace("'", "")


def _error(op: str, reason: str) -> RecordingError:
    return RecordingError(f"{op} ({users_line()}): {reason}")
