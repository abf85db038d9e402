"""A fused kernel for blocks of NumPy arrays: its registers, and calls whose arguments are slots that blocks fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from engine.codegen.kernels.array_functions import ARRAY_FUNCTIONS, in_blocks
from engine.codegen.kernels.program import PAIRS, FusedKernel, Instruction, KernelOperand, Level, Scalars
from engine.ir.op import Array, KernelCall, Namespace
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import HostArray

# Threefry-2x32 on arrays: it mixes two 32-bit words of a counter under a two-word key, in 20 rounds; the results become
# uniform numbers. J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). It
# uses integer operations only, so every device gives the same bits.

#: bits by which the second word is rotated, for each of four rounds, by turns
ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
ROUNDS_OF_FOUR: Final = 5
#: constant whose exclusive or with the two words of the key is the key's third word
PARITY: Final = 0x1BD11BDA

WordPair = tuple[Array, Array]


def threefry_2x32(key: WordPair, counter: WordPair) -> WordPair:
    """Mix the words of a counter under a key: arrays of uint32, which broadcast. Returns new arrays."""
    first, second = key
    keys = first, second, first ^ second ^ first.dtype.type(PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    rotated = y.copy()
    for number in range(ROUNDS_OF_FOUR):
        for bits in ROTATIONS[number % 2]:
            x += y
            # Rotate y to the left in place, with one temporary array for all rounds.
            rotated[...] = y
            rotated <<= rotated.dtype.type(bits)
            y >>= y.dtype.type(32 - bits)
            y |= rotated
            y ^= x
        x += keys[(number + 1) % 3]
        y += keys[(number + 2) % 3]
        y += y.dtype.type(number + 1)
    return x, y


def wide_bits(words: WordPair) -> Array:
    """Join two words to a uint64, the first word in the upper half."""
    bits = words[0].astype("uint64")
    bits <<= bits.dtype.type(32)
    bits |= words[1]
    return bits


def write_uniform(words: WordPair, out: Array) -> None:
    """Write uniform numbers in [0, 1), float32 or float64. The upper bits become the mantissa of a number in [1, 2)."""
    bits = words[0] ^ words[1] if out.dtype.itemsize == 4 else wide_bits(words)
    word, one = bits.dtype.type, out.dtype.type(1)
    bits >>= word(8 * out.dtype.itemsize - np.finfo(out.dtype).nmant)
    bits |= one.view(word)
    out[...] = bits.view(out.dtype)
    out -= one


def threefry_uniform(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw uniform numbers. The operands are the words of a key, and two numbers whose sum is the counter, below 2³².

    All operands are integers passed as the bits of floats.
    """
    counter, out = _integers(xp, row) + _integers(xp, column), _place(xp, (first, second, row, column), out)
    write_uniform(_drawn(xp, first, second, counter), _with_axis(out))
    return out


def threefry_bits(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw the exclusive or of both words, as the bits of float32, with the operands of `threefry_uniform`."""
    counter, out = _integers(xp, row) + _integers(xp, column), _place(xp, (first, second, row, column), out)
    x, y = _drawn(xp, first, second, counter)
    _with_axis(out).view(x.dtype)[...] = x ^ y
    return out


def threefry_word(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw one word, as the bits of float32. The counter is row + column // 2; odd columns take the second word."""
    number, out = _integers(xp, column), _place(xp, (first, second, row, column), out)
    x, y = _drawn(xp, first, second, _integers(xp, row) + (number >> number.dtype.type(1)))
    _with_axis(out).view(x.dtype)[...] = xp.where(number & number.dtype.type(1), y, x)
    return out


def _drawn(xp: Namespace, first: Array, second: Array, counter: Array) -> WordPair:
    return threefry_2x32((_integers(xp, first), _integers(xp, second)), (xp.zeros_like(counter), counter))


def _integers(xp: Namespace, floats: Array) -> Array:
    """Return the integers passed as the bits of floats, with at least one axis."""
    return xp.atleast_1d(floats.view(f"u{floats.dtype.itemsize}").astype("uint32"))


def _place(xp: Namespace, operands: Sequence[Array], out: Array | None) -> Array:
    """Return `out`, or a new array of the operands' common shape and dtype."""
    return xp.empty(xp.broadcast(*operands).shape, operands[0].dtype) if out is None else out


def _with_axis(out: Array) -> Array:
    return out if out.ndim else out.reshape(1)


#: primitive → its ufunc in numpy and cupy
UFUNCS: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in ("sqrt", "floor", "ceil", "rint", "add", "minimum", "maximum", "copysign")}
    | {name: name for name in ("exp", "expm1", "log", "log1p", "log2", "tanh", "sin", "cos")}
    | {"neg": "negative", "abs": "absolute", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "remainder"}
    | {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
    | {"and": "logical_and", "or": "logical_or", "not": "logical_not"}
)
#: the same for primitives of complex numbers only
_COMPLEX_UFUNCS: Final = {"conj": "conjugate"} | {name: name for name in ("reciprocal", "sinh", "cosh")}
#: ufunc → its primitive of complex numbers
COMPLEX_PRIMITIVE_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: op for op, name in {**UFUNCS, **_COMPLEX_UFUNCS}.items() if op in PAIRS}
)
#: reduction of a row → the ufunc whose `reduce` computes it
FOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {"row_sum": "add", "row_prod": "multiply", "row_max": "maximum", "row_min": "minimum"}
)
#: primitives whose ufuncs need `out` as a keyword argument
BY_NAME: Final = frozenset({"minimum", "maximum"})


def _pair(xp: Namespace, re: Array, im: Array, out: Array | None = None) -> Array:
    if out is None:
        out = xp.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re.dtype, np.complex64))
    out.real[...] = re
    out.imag[...] = im
    return out


def _part(name: str, xp: Namespace, x: Array, out: Array | None = None) -> Array:
    part = getattr(x, name)
    if out is None:
        return part.copy()
    xp.copyto(out, part)
    return out


def _angle(xp: Namespace, x: Array, out: Array | None = None) -> Array:
    return xp.arctan2(x.imag, x.real, out=out)


def _sech2(xp: Namespace, x: Array, out: Array | None = None) -> Array:
    """Compute 1 / cosh² x = 4 e / (1 + e)² with e = exp(−2|x|), which does not overflow."""
    e = xp.multiply(xp.absolute(x, out=out), -2, out=out)
    e = xp.exp(e, out=out)
    total = e + 1
    e = xp.divide(xp.divide(e, total, out=out), total, out=out)
    return xp.multiply(e, 4, out=out)


#: primitives without a ufunc: functions of the array module and of a ufunc's arguments
_OURS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {"threefry_uniform": threefry_uniform, "threefry_bits": threefry_bits, "threefry_word": threefry_word}
    | {"sech2": _sech2, "pair": _pair, "real": partial(_part, "real"), "imag": partial(_part, "imag"), "angle": _angle}
)


def ufunc_of(xp: Any, op: str) -> Any:
    """Return a primitive's ufunc of `xp` (numpy or cupy), or a function that acts like one. Raises TypeError."""
    if op in _OURS:
        return partial(_OURS[op], xp)
    name = UFUNCS.get(op) or _COMPLEX_UFUNCS.get(op)
    if name is None:
        raise TypeError(f"{op} is for compiled kernels")
    return getattr(xp, name)


class Home(NamedTuple):
    """Place of a scalar: a constant, or the number of an operand, a result, or a register of the block's size."""

    kind: Literal["constant", "operand", "result", "register"]
    number: int


class Register(NamedTuple):
    """Array with the size of a block, or at level ROW with its number of rows."""

    level: Level
    type: Scalars


class Registers(NamedTuple):
    """Homes of the scalars that results depend on, in program order, and the list of registers."""

    homes: dict[int, Home]
    registers: tuple[Register, ...]


def assign_registers(
    fused: FusedKernel, copied: frozenset[int] = frozenset(), direct: frozenset[int] = frozenset()
) -> Registers:
    """Assign registers by liveness. Operands in `copied` are copied first; results in `direct` hold their scalar.

    A scalar may reuse the register of an operand that it reads for the last time, if both are of the same kind. A
    select takes several calls, so it gets a register that none of its operands is in.
    """
    return _Assignment(fused, copied, direct).assign()


def needed(fused: FusedKernel) -> list[int]:
    """List the scalars that some result depends on, in order."""
    reached = {result.value for result in fused.results}
    for number in range(len(fused.instructions) - 1, -1, -1):
        if number in reached:
            reached.update(fused.instructions[number].args)
    return sorted(reached)


def is_folded(fused: FusedKernel, number: int) -> bool:
    """Whether a scalar depends on no operand."""
    instruction = fused.instructions[number]
    return instruction.op == "constant" or (
        instruction.op != "load"
        and instruction.level == Level.CONSTANT
        and all(is_folded(fused, a) for a in instruction.args)
    )


class _Assignment:
    def __init__(self, fused: FusedKernel, copied: frozenset[int], direct: frozenset[int]) -> None:
        self.fused, self.copied = fused, copied
        self.result_of = {fused.results[j].value: j for j in sorted(direct, reverse=True)}
        self.order = needed(fused)
        self.last = {a: number for number in self.order for a in fused.instructions[number].args}
        self.homes: dict[int, Home] = {}
        self.registers: list[Register] = []
        self.free: dict[Register, list[int]] = {}

    def assign(self) -> Registers:
        for number in self.order:
            self.homes[number] = self._fixed(number) or self._computed(number)
            self._release(number)
        return Registers(self.homes, tuple(self.registers))

    def _fixed(self, number: int) -> Home | None:
        instruction = self.fused.instructions[number]
        if is_folded(self.fused, number):
            return Home("constant", number)
        if instruction.op == "load" and instruction.data not in self.copied:
            return Home("operand", instruction.data)
        return Home("result", self.result_of[number]) if number in self.result_of else None

    def _computed(self, number: int) -> Home:
        instruction = self.fused.instructions[number]
        kind = register_of(instruction)
        # A ufunc may write over an operand. A select consists of several calls, which read the operands again.
        for argument in instruction.args if len(instruction.args) < 3 else ():
            if self._is_last_use(argument, number) and self.registers[self.homes[argument].number] == kind:
                return self.homes[argument]
        free = self.free.setdefault(kind, [])
        if not free:
            free.append(len(self.registers))
            self.registers.append(kind)
        return Home("register", free.pop())

    def _release(self, number: int) -> None:
        """Free the registers that are read for the last time here, except one that the scalar itself has reused."""
        reused = self.homes[number]
        dead = {a for a in self.fused.instructions[number].args if self._is_last_use(a, number)}
        # A scalar that nothing reads later (only a result stores it) is dead as soon as it is stored.
        dead |= set() if number in self.last else {number}
        for home in {self.homes[a] for a in dead if a == number or self.homes[a] != reused}:
            if home.kind == "register":
                self.free.setdefault(self.registers[home.number], []).append(home.number)

    def _is_last_use(self, argument: int, number: int) -> bool:
        return self.last[argument] == number and self.homes[argument].kind == "register"


def register_of(instruction: Instruction) -> Register:
    """Return the kind of register that holds a scalar."""
    return Register(Level.ELEMENT if instruction.level == Level.ELEMENT else Level.ROW, instruction.type)


#: function that views the array in a slot for a block of some shape
SlotView = Callable[[Any, tuple[int, ...]], Any]

#: context for functions of one block: the deadline is checked between blocks
_UNWATCHED = RunContext(np)


class _SlotCall(NamedTuple):
    """Call whose arguments are slots; `out` is the slot of the keyword argument `out`, if there is one."""

    function: Callable[..., Any]
    args: Callable[[Sequence[Any]], tuple[Any, ...]]
    out: int | None


class BlockProgram:
    """A kernel with numbers of dtype `number`, as ufunc calls on numbered slots, shared by all blocks and arrays.

    The first slots are the operands, the results, the registers of `plan`, and the `spread` values: constants that are
    written out as arrays of the block's size. Raises TypeError for primitives that only compiled kernels have.
    """

    def __init__(self, fused: FusedKernel, number: np.dtype[Any], plan: Registers) -> None:
        self.fused, self.number = fused, number
        self.homes, registers = plan
        self.registers = [(r.level, dtype_of(r, number)) for r in registers]
        spread = spread_scalars(fused, plan)
        results = len(fused.operands)
        self._starts = {"operand": 0, "result": results, "register": results + len(fused.results)}
        first = self._starts["register"] + len(registers)
        self._spread_slots = {n: first + i for i, n in enumerate(spread)}
        self._arrays = first + len(spread)
        #: contents of the slots behind the arrays; None where each block puts a view of another slot
        self._fixed_slots: list[Any] = []
        self._views: list[tuple[int, SlotView, int]] = []
        self._view_slots: dict[tuple[SlotView, int], int] = {}
        self._slots: dict[int, int] = {}
        self._calls: list[_SlotCall] = []
        for n in self.homes:
            self._write_scalar(n)
        self.spread: list[HostArray] = [self._fixed_slots[self._slots[n] - self._arrays] for n in spread]

    @property
    def is_one_ufunc(self) -> bool:
        """Whether the program is a single ufunc call, which needs no memory whatever the size."""
        return len(self._calls) == 1 and not self.registers and isinstance(self._calls[0].function, np.ufunc)

    def calls(self, arrays: Sequence[HostArray], shape: tuple[int, ...]) -> list[KernelCall]:
        """Bind the calls for a block of this shape; `arrays` are its operands, results, registers and spread values."""
        # The program is the same for all blocks: a block only fills in its arrays, and the views that depend on its
        # shape.
        slots = [*arrays, *self._fixed_slots]
        for slot, view, source in self._views:
            slots[slot] = view(slots[source], shape)
        return [
            (function if out is None else partial(function, out=slots[out]), args(slots))
            for function, args, out in self._calls
        ]

    def memory(self, shape: tuple[int, ...]) -> list[HostArray]:
        """Allocate registers for a block of this shape."""
        per_row = (*shape[:-1], 1)
        return [np.empty(shape if level == Level.ELEMENT else per_row, dtype) for level, dtype in self.registers]

    def _write_scalar(self, n: int) -> None:
        """Write the calls that compute a scalar, and those that store it in results."""
        instruction, home = self.fused.instructions[n], self.homes[n]
        if home.kind == "constant":
            self._slots[n] = self._fixed(self._folded(instruction))
        else:
            self._slots[n] = self._starts[home.kind] + home.number
            if home.kind != "operand":
                self._compute(instruction, self._slots[n])
        self._store(n)

    def _folded(self, instruction: Instruction) -> HostArray:
        """Compute a scalar that depends on no operand."""
        op, out = instruction.op, np.empty((), dtype_of(instruction, self.number))
        read = [self._fixed_slots[self._slots[a] - self._arrays] for a in instruction.args]
        with np.errstate(all="ignore"):
            if op == "constant":
                out[...] = instruction.data
            elif op in ("select", "choose"):
                out[...] = read[1] if read[0] else read[2]
            elif op in ARRAY_FUNCTIONS:
                in_blocks(_UNWATCHED, ARRAY_FUNCTIONS[op].blocks, read[0], out)
            else:
                ufunc_of(np, op)(*read, out=out)
        return out

    def _compute(self, instruction: Instruction, out: int) -> None:
        op, read = instruction.op, [self._slots[a] for a in instruction.args]
        if op == "load":
            self._call(np.copyto, out, instruction.data, self._fixed("unsafe"))
        elif op in ARRAY_FUNCTIONS:
            self._call(partial(in_blocks, _UNWATCHED, ARRAY_FUNCTIONS[op].blocks), *read, out)
        elif op in FOLDS:
            axis_and_dtype = [self._fixed(value) for value in (-1, None)]
            row = self._view(_as_elements, *read)
            self._call(getattr(np, FOLDS[op]).reduce, row, *axis_and_dtype, out, self._fixed(True))
        elif op in ("select", "choose"):
            self._select(instruction.type, out, *read)
        elif op in BY_NAME:
            wide = self._spread_slots if instruction.level == Level.ELEMENT else {}
            read = [wide.get(a, self._slots[a]) for a in instruction.args]
            self._call(ufunc_of(np, op), *read, by_name=out)
        else:
            self._call(ufunc_of(np, op), *read, out)

    def _select(self, type: Scalars, out: int, cond: int, on_true: int, on_false: int) -> None:
        """Select by exclusive ors, b ^ ((a ^ b) · cond), on the bits. Pairs, too wide for that, are copied.

        NumPy's `where` branches, and half of its branches are mispredicted.
        """
        if type == "pair":
            self._call(np.copyto, out, on_false)
            self._call(_copy_where, out, on_true, cond)
            return
        first, second, into = (self._view(_bits, slot) for slot in (on_true, on_false, out))
        self._call(np.bitwise_xor, first, second, into)
        self._call(np.multiply, into, self._view(_truth, cond), into)
        self._call(np.bitwise_xor, into, second, into)

    def _store(self, n: int) -> None:
        """Copy or sum up a scalar that is not computed in its result's memory."""
        for j, result in enumerate(self.fused.results):
            if result.value != n or self.homes[n] == ("result", j):
                continue
            result_slot, value = self._starts["result"] + j, self._slots[n]
            if not result.adds_up:
                self._call(np.copyto, result_slot, value, self._fixed("unsafe"))
            elif result.kind == "columns":
                axes = self._view(_row_axes, value)
                self._call(np.add.reduce, self._view(_as_elements, value), axes, self._fixed(None), result_slot)
            else:
                none = self._fixed(None)
                self._call(np.add.reduce, self._view(_as_rows, value), none, none, result_slot)

    def _call(self, function: Callable[..., Any], *slots: int, by_name: int | None = None) -> None:
        self._calls.append(_SlotCall(function, itemgetter(*slots), by_name))

    def _fixed(self, value: Any) -> int:
        """Add a slot with the same value in every block."""
        self._fixed_slots.append(value)
        return self._arrays + len(self._fixed_slots) - 1

    def _view(self, view: SlotView, source: int) -> int:
        """Add a slot for a view of another slot."""
        # These views of constants do not depend on a block's shape, so they are made once.
        if source >= self._arrays and view in (_bits, _truth):
            return self._fixed(view(self._fixed_slots[source - self._arrays], ()))
        if (view, source) not in self._view_slots:
            self._view_slots[view, source] = slot = self._fixed(None)
            self._views.append((slot, view, source))
        return self._view_slots[view, source]


def dtype_of(scalar: Register | Instruction | KernelOperand, number: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a scalar in a kernel with numbers of dtype `number`."""
    if scalar.type == "pair":
        return np.result_type(number, np.complex64)
    return np.dtype(bool) if scalar.type == "bool" else number


def _copy_where(out: HostArray, x: HostArray, cond: HostArray) -> None:
    np.copyto(out, x, where=cond)


def spread_scalars(fused: FusedKernel, plan: Registers) -> list[int]:
    """List the constants that NumPy processes faster as arrays of a whole block."""
    computed = (fused.instructions[n] for n in plan.homes)
    # minimum and maximum of NumPy are 4 times faster with an array as large as the result than with a scalar.
    constants = {
        a
        for instruction in computed
        if instruction.level == Level.ELEMENT and instruction.op in BY_NAME
        for a in instruction.args
    }
    return sorted(n for n in constants if plan.homes[n].kind == "constant")


_BITS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}


def _bits(array: HostArray, _: tuple[int, ...]) -> HostArray:
    return array.view(_BITS[array.itemsize])


def _truth(array: HostArray, _: tuple[int, ...]) -> HostArray:
    return array.view(_BITS[1])


def _as_elements(array: HostArray, shape: tuple[int, ...]) -> HostArray:
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _as_rows(array: HostArray, shape: tuple[int, ...]) -> HostArray:
    return _as_elements(array, (*shape[:-1], 1))


def _row_axes(_: HostArray, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(len(shape) - 1))
