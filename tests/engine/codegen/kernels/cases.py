"""Random loops over random spaces, memory to bind them to, and their results in NumPy, to the last bit.

NumPy and the kernels share the arithmetic of IEEE 754, but NumPy has no fused multiply-add, which can be left out. Sums
are added in the order of the printers' contract: lanes, halves, blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.codegen.kernels.program import ARITHMETIC, BITS, FusedKernel, KernelBuilder, Level, Scalar, Space, lanes_of

Array = np.ndarray[Any, Any]
COLUMNS = (1, 2, 3, 7, 10, 16, 33, 64, 65, 100, 130)
SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-41, 1e30, 0.5, 2.5)


@dataclass
class Case:
    """A loop, its space, and its operands as arrays of shape rows × columns with the strides of the space."""

    loop: FusedKernel
    space: Space
    operands: list[Array]

    @property
    def lanes(self) -> int:
        return lanes_of(self.loop, self.space.columns)

    def results(self) -> list[Array]:
        """Allocate memory for the results in full shape, filled with a number that no kernel computes."""
        arrays = []
        for result, strides in zip(self.loop.results, self.space.strides[len(self.operands) :], strict=True):
            instruction = self.loop.instructions[result.value]
            dtype = np.dtype(bool) if instruction.type == "bool" else np.dtype(self.loop.dtype)
            if result.kind in ("columns", "total"):
                arrays.append(np.full((self.space.columns,) if result.kind == "columns" else (), 77, dtype))
            else:
                assert strides is not None
                columns = self.space.columns if result.kind == "element" else 1
                arrays.append(strided_array((*self.space.rows, columns), strides, dtype))
        return arrays


def strided_array(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Allocate an array with these strides along its rows, and dense columns."""
    reach = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=False) if n) + shape[-1] + 1
    memory = np.full(max(reach, 1), 77, dtype)
    steps = tuple(stride * memory.itemsize for stride in (*strides, 1))
    return np.lib.stride_tricks.as_strided(memory, shape, steps)


def random_case(seed: int, *, fma: bool = True) -> Case:
    rng = np.random.default_rng(seed)
    loop = random_loop(rng, fma=fma)
    space = random_space(rng, loop)
    operands = []
    for operand, strides in zip(loop.operands, space.strides, strict=False):
        dtype = np.dtype(bool) if operand.type == "bool" else np.dtype(loop.dtype)
        columns = space.columns if operand.level == Level.ELEMENT else 1
        array = strided_array((*space.rows, columns), strides, dtype)
        array[...] = values(rng, array.shape, dtype)
        operands.append(array)
    return Case(loop, space, operands)


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    normal = rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), normal).astype(dtype)


def random_space(rng: np.random.Generator, loop: FusedKernel) -> Space:
    """Draw rows with any order of axes, gaps, and operands repeated along axes; or dense rows, the last cut short."""
    rows = tuple(int(n) for n in rng.integers(1, 5, loop.row_axes))
    if rng.random() < 0.1:
        rows = (*rows[:-1], 0)
    columns = int(rng.choice(COLUMNS))
    count = int(np.prod(rows))
    is_short = loop.row_axes == 1 and count > 0 and bool(rng.random() < 0.5)
    levels = [operand.level for operand in loop.operands]
    levels += [Level.ELEMENT if result.kind == "element" else Level.ROW for result in loop.results]
    strides = []
    for n, level in enumerate(levels):
        width = columns if level == Level.ELEMENT else 1
        order, step, along = rng.permutation(loop.row_axes), width, [0] * loop.row_axes
        for axis in order:
            along[axis] = step
            step = step * rows[axis] + (0 if is_short else int(rng.integers(0, 3)))
        if n < len(loop.operands) and not is_short:
            along = [0 if rng.random() < 0.2 else stride for stride in along]
        summed = n >= len(loop.operands) and loop.results[n - len(loop.operands)].kind in ("columns", "total")
        strides.append(() if summed else tuple(int(stride) for stride in along))
    length = count * columns - (int(rng.integers(0, columns)) if is_short else 0)
    return Space(rows, columns, length, int(rng.integers(1, count + 2)), tuple(strides))


def random_loop(rng: np.random.Generator, *, fma: bool) -> FusedKernel:
    """Draw a loop with random primitives and results of all kinds."""
    builder = KernelBuilder(str(rng.choice(["float32", "float64"])), int(rng.integers(1, 4)))
    bits = 32 if builder.dtype == "float32" else 64
    pool: dict[str, list[Scalar]] = {"float": [], "bool": [], "int": []}
    for _ in range(int(rng.integers(1, 4))):
        pool["float"].append(builder.load(Level.ELEMENT))
    pool["float"] += [builder.load(Level.ROW), builder.constant(float(rng.normal())), builder.constant(-0.0)]
    pool["bool"] += [builder.load(Level.ELEMENT, "bool"), builder.load(Level.ROW, "bool")]
    pool["int"] += [builder.integer(int(rng.integers(-9, 9))), builder.integer(-(1 << (bits - 1)))]
    names = [*ARITHMETIC, *BITS, "row_sum", "row_prod", "row_max", "row_min"]
    for _ in range(int(rng.integers(5, 40))):
        op = str(rng.choice(names))
        if op == "fma" and not fma:
            continue
        scalar = random_primitive(rng, builder, op, pool, bits)
        pool[scalar.type].append(scalar)
    store_some(rng, builder, pool)
    return builder.build()


def random_primitive(
    rng: np.random.Generator, builder: KernelBuilder, op: str, pool: dict[str, list[Scalar]], bits: int
) -> Scalar:
    takes = (ARITHMETIC | BITS)[op].operands if op in ARITHMETIC or op in BITS else ("float",)
    args = [pool[type][rng.integers(len(pool[type]))] for type in takes]
    if op in ("shl", "ashr"):
        args[1] = builder.integer(int(rng.integers(0, bits)))
    if op in ("bits", "copysign"):  # the sign and the payload of a NaN are the compiler's
        args[-1] = args[-1].eq(args[-1]).where(args[-1], 0.25)
    return builder.apply(op, *args)


def store_some(rng: np.random.Generator, builder: KernelBuilder, pool: dict[str, list[Scalar]]) -> None:
    rows = [scalar for scalar in pool["float"] if scalar.level == Level.ROW]
    for kind in ("element", "element", "columns"):
        builder.store(kind, pool["float"][-int(rng.integers(1, 5))])
    builder.store("element", pool["bool"][-1])
    for kind in ("row", "total"):
        builder.store(kind, rows[rng.integers(len(rows))])
    builder.store("row", next(scalar for scalar in reversed(pool["bool"]) if scalar.level < Level.ELEMENT))


# results in NumPy


def expected(case: Case) -> list[Array]:
    """Compute the results in full shape; elements beyond a short last row have no meaning."""
    with np.errstate(all="ignore"):
        return _expected(case)


def _expected(case: Case) -> list[Array]:
    columns = case.space.columns
    count = int(np.prod(case.space.rows))
    in_space = space_mask(case)
    computed: list[Array] = []
    for instruction in case.loop.instructions:
        if instruction.op == "load":
            operand = case.operands[instruction.data]
            value = np.broadcast_to(operand.reshape(count, operand.shape[-1]), (count, columns))
        elif instruction.op == "constant":
            dtype = case.loop.dtype if instruction.type == "float" else case.loop.dtype.replace("float", "int")
            value = np.full((count, columns), instruction.data, dtype)
        elif instruction.op.startswith("row_"):
            value = np.broadcast_to(
                reduced(instruction.op, computed[instruction.args[0]], in_space, case.lanes), in_space.shape
            )
        else:
            value = primitive(case.loop, instruction.op, [computed[i] for i in instruction.args])
        computed.append(value)
    return [result_of(result.kind, computed[result.value], in_space, case) for result in case.loop.results]


def space_mask(case: Case) -> Array:
    """Return a mask of the points of rows × columns that are in the space."""
    count = int(np.prod(case.space.rows))
    return np.arange(count * case.space.columns).reshape(count, case.space.columns) < case.space.length


def result_of(kind: str, value: Array, in_space: Array, case: Case) -> Array:
    if kind in ("element", "row"):
        return value.reshape(*case.space.rows, value.shape[-1])[..., : value.shape[-1] if kind == "element" else 1]
    block = case.space.block
    parts = [value[start : start + block] * 1 for start in range(0, len(value), block)]
    masks = [in_space[start : start + block] for start in range(0, len(value), block)]
    sums = np.zeros((len(parts), case.space.columns), value.dtype)
    for part, (rows, mask) in enumerate(zip(parts, masks, strict=True)):
        for row, in_row in zip(rows, mask, strict=True):
            sums[part] = np.where(in_row, sums[part] + row, sums[part]) if kind == "columns" else sums[part] + row
    if len(sums) == 1:
        return sums[0] if kind == "columns" else sums[0, 0]
    return np.add.reduce(sums, axis=0) if kind == "columns" else np.add.reduce(np.ascontiguousarray(sums[:, 0]))


def reduced(op: str, value: Array, in_space: Array, lanes: int) -> Array:
    """Reduce rows to a column: in lanes, and then the lanes by halves."""
    first = {"row_sum": 0.0, "row_prod": 1.0, "row_max": -np.inf, "row_min": np.inf}[op]
    padded = np.full((len(value), -(-value.shape[1] // lanes) * lanes), first, value.dtype)
    padded[:, : value.shape[1]] = np.where(in_space, value, first)
    total = np.full((len(value), lanes), first, value.dtype)
    for start in range(0, padded.shape[1], lanes):
        total = combined(op, padded[:, start : start + lanes], total).astype(value.dtype)
    while lanes > 1:
        lanes //= 2
        total = combined(op, total[:, :lanes], total[:, lanes:])
    return total


def combined(op: str, one: Array, other: Array) -> Array:
    if op == "row_prod":
        return one * other
    return one + other if op == "row_sum" else extreme_of(op[4:], one, other)


def extreme_of(op: str, first: Array, second: Array) -> Array:
    exceeds = first > second if op.startswith("max") else first < second
    return np.where(np.isnan(first) | exceeds, first, second)


def primitive(loop: FusedKernel, op: str, args: list[Array]) -> Array:
    names = {
        "neg": "negative", "abs": "absolute", "sub": "subtract", "mul": "multiply", "div": "divide", "lt": "less",
        "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
        "and": "logical_and", "or": "logical_or", "not": "logical_not", "select": "where", "choose": "where",
        "iadd": "add", "isub": "subtract", "iand": "bitwise_and", "ior": "bitwise_or", "ixor": "bitwise_xor",
        "shl": "left_shift", "ashr": "right_shift", "ieq": "equal", "ilt": "less",
    }  # fmt: skip
    if op in ("bits", "from_bits"):
        kind = "int" if op == "bits" else "float"
        return np.ascontiguousarray(args[0]).view(loop.dtype.replace("float", kind))
    if op in ("minimum", "maximum"):
        return extreme_of(op, *args)
    result: Array = getattr(np, names.get(op, op))(*args)
    return result


def assert_same_bits(case: Case, actual: list[Array], reference: list[Array]) -> None:
    """Assert equal numbers with equal signs of zeros; all NaN are alike."""
    in_space = space_mask(case).reshape(*case.space.rows, case.space.columns)
    for result, one, other in zip(case.loop.results, actual, reference, strict=True):
        mask = in_space if result.kind == "element" else np.ones(one.shape, bool)
        np.testing.assert_array_equal(one[mask], other[mask], err_msg=str(result))
        if one.dtype.kind == "f":
            numbers = mask & ~np.isnan(one)
            np.testing.assert_array_equal(np.signbit(one[numbers]), np.signbit(other[numbers]), err_msg=str(result))
