"""A fused kernel made ready for blocks of NumPy arrays: its registers, and its calls by slots that each block fills."""

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

# Threefry-2x32 on arrays: two words of 32 bits, mixed under a key of two others, and uniform numbers made of them.
# J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), in 20 rounds. It is
# made of integers alone, so every device has the same bits.

#: by how many bits the second word is turned, in rounds of four
ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
ROUNDS_OF_FOUR: Final = 5
#: the third word of the key is the parity of the others and of this
PARITY: Final = 0x1BD11BDA

WordPair = tuple[Array, Array]


def mixed(key: WordPair, counter: WordPair) -> WordPair:
    """Mix the words of a counter under a key: arrays of uint32, which broadcast. The result is new memory."""
    first, second = key
    keys = first, second, first ^ second ^ first.dtype.type(PARITY)
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    turned = y.copy()
    for number in range(ROUNDS_OF_FOUR):
        for bits in ROTATIONS[number % 2]:
            x += y
            turned[...] = y
            turned <<= turned.dtype.type(bits)
            y >>= y.dtype.type(32 - bits)
            y |= turned
            y ^= x
        x += keys[(number + 1) % 3]
        y += keys[(number + 2) % 3]
        y += y.dtype.type(number + 1)
    return x, y


def wide_bits(words: WordPair) -> Array:
    """Join two words to a uint64: the first word, and behind it the second."""
    bits = words[0].astype("uint64")
    bits <<= bits.dtype.type(32)
    bits |= words[1]
    return bits


def write_uniform(words: WordPair, out: Array) -> None:
    """Write uniform numbers in [0, 1), float32 or float64: the upper bits are a mantissa, of a number in [1, 2)."""
    bits = words[0] ^ words[1] if out.dtype.itemsize == 4 else wide_bits(words)
    word, one = bits.dtype.type, out.dtype.type(1)
    bits >>= word(8 * out.dtype.itemsize - np.finfo(out.dtype).nmant)
    bits |= one.view(word)
    out[...] = bits.view(out.dtype)
    out -= one


def threefry_uniform(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw uniform numbers with the words of a key, and two numbers whose sum is the counter, below 2³².

    All operands are the bits of floats.
    """
    counter, out = _carried(xp, row) + _carried(xp, column), _place(xp, (first, second, row, column), out)
    write_uniform(_drawn(xp, first, second, counter), _with_axis(out))
    return out


def threefry_bits(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw as `threefry_uniform` the exclusive or of both words, as the bits of float32."""
    counter, out = _carried(xp, row) + _carried(xp, column), _place(xp, (first, second, row, column), out)
    x, y = _drawn(xp, first, second, counter)
    _with_axis(out).view(x.dtype)[...] = x ^ y
    return out


def threefry_word(
    xp: Namespace, first: Array, second: Array, row: Array, column: Array, out: Array | None = None
) -> Array:
    """Draw as `threefry_bits`, of counter row + column / 2, the first word, or where column is odd, the second one."""
    number, out = _carried(xp, column), _place(xp, (first, second, row, column), out)
    x, y = _drawn(xp, first, second, _carried(xp, row) + (number >> number.dtype.type(1)))
    _with_axis(out).view(x.dtype)[...] = xp.where(number & number.dtype.type(1), y, x)
    return out


def _drawn(xp: Namespace, first: Array, second: Array, counter: Array) -> WordPair:
    return mixed((_carried(xp, first), _carried(xp, second)), (xp.zeros_like(counter), counter))


def _carried(xp: Namespace, floats: Array) -> Array:
    """Return the words that floats carry as their bits, along one axis at least."""
    return xp.atleast_1d(floats.view(f"u{floats.dtype.itemsize}").astype("uint32"))


def _place(xp: Namespace, operands: Sequence[Array], out: Array | None) -> Array:
    """Return `out`, or a new array of the shape and dtype that the operands have together."""
    return xp.empty(xp.broadcast(*operands).shape, operands[0].dtype) if out is None else out


def _with_axis(out: Array) -> Array:
    return out if out.ndim else out.reshape(1)


#: primitive → the ufunc of numpy and cupy that it is
UFUNCS: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in ("sqrt", "floor", "ceil", "rint", "add", "minimum", "maximum", "copysign")}
    | {name: name for name in ("exp", "expm1", "log", "log1p", "log2", "tanh", "sin", "cos")}
    | {"neg": "negative", "abs": "absolute", "sub": "subtract", "mul": "multiply", "div": "divide", "mod": "remainder"}
    | {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
    | {"and": "logical_and", "or": "logical_or", "not": "logical_not"}
)
#: the same of what complex numbers alone have
_COMPLEX_UFUNCS: Final = {"conj": "conjugate"} | {name: name for name in ("reciprocal", "sinh", "cosh")}
#: ufunc → the primitive of complex numbers that it is
COMPLEX_PRIMITIVE_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: op for op, name in {**UFUNCS, **_COMPLEX_UFUNCS}.items() if op in PAIRS}
)
#: reduction of a row → the ufunc that reduces
FOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {"row_sum": "add", "row_prod": "multiply", "row_max": "maximum", "row_min": "minimum"}
)
#: those whose `out` NumPy wants by name
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


#: primitives that neither module has: functions of it, and of what a ufunc takes
_OURS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {"threefry_uniform": threefry_uniform, "threefry_bits": threefry_bits, "threefry_word": threefry_word}
    | {"pair": _pair, "real": partial(_part, "real"), "imag": partial(_part, "imag"), "angle": _angle}
)


def ufunc_of(xp: Any, op: str) -> Any:
    """Return a ufunc of `xp` (numpy or cupy), or a function like one, for a primitive. Raises TypeError."""
    if op in _OURS:
        return partial(_OURS[op], xp)
    name = UFUNCS.get(op) or _COMPLEX_UFUNCS.get(op)
    if name is None:
        raise TypeError(f"{op} is for compiled kernels")
    return getattr(xp, name)


class Home(NamedTuple):
    """Place of a scalar: an operand or a result by its number, an array of the block's size, or one that is fixed."""

    kind: Literal["constant", "operand", "result", "register"]
    number: int


class Register(NamedTuple):
    """An array as large as a block, or (at ROW) as its rows are many."""

    level: Level
    type: Scalars


class Registers(NamedTuple):
    """Homes of the scalars that a result depends on, in their order, and the registers that there are."""

    homes: dict[int, Home]
    registers: tuple[Register, ...]


def assign_registers(
    loop: FusedKernel, copied: frozenset[int] = frozenset(), direct: frozenset[int] = frozenset()
) -> Registers:
    """Assign registers by liveness. Operands in `copied` are copied first; results in `direct` hold their scalar.

    A scalar may take over the register of one that is used for the last time to compute it, if the two are of one
    kind; a choice, which takes several calls, has one of its own.
    """
    return _Assignment(loop, copied, direct).made()


def needed(loop: FusedKernel) -> list[int]:
    """List the scalars that some result depends on, in order."""
    used = {result.value for result in loop.results}
    for number in range(len(loop.instructions) - 1, -1, -1):
        if number in used:
            used.update(loop.instructions[number].args)
    return sorted(used)


def is_folded(loop: FusedKernel, number: int) -> bool:
    """Whether a scalar depends on no operand."""
    instruction = loop.instructions[number]
    return instruction.op == "constant" or (
        instruction.op != "load"
        and instruction.level == Level.CONSTANT
        and all(is_folded(loop, a) for a in instruction.args)
    )


class _Assignment:
    def __init__(self, loop: FusedKernel, copied: frozenset[int], direct: frozenset[int]) -> None:
        self.loop, self.copied = loop, copied
        self.held = {loop.results[j].value: j for j in sorted(direct, reverse=True)}
        self.order = needed(loop)
        self.last = {a: number for number in self.order for a in loop.instructions[number].args}
        self.homes: dict[int, Home] = {}
        self.registers: list[Register] = []
        self.free: dict[Register, list[int]] = {}

    def made(self) -> Registers:
        for number in self.order:
            self.homes[number] = self._fixed(number) or self._computed(number)
            self._release(number)
        return Registers(self.homes, tuple(self.registers))

    def _fixed(self, number: int) -> Home | None:
        instruction = self.loop.instructions[number]
        if is_folded(self.loop, number):
            return Home("constant", number)
        if instruction.op == "load" and instruction.data not in self.copied:
            return Home("operand", instruction.data)
        return Home("result", self.held[number]) if number in self.held else None

    def _computed(self, number: int) -> Home:
        instruction = self.loop.instructions[number]
        kind = register_of(instruction)
        for argument in instruction.args if len(instruction.args) < 3 else ():
            if self._ends(argument, number) and self.registers[self.homes[argument].number] == kind:
                return self.homes[argument]
        free = self.free.setdefault(kind, [])
        if not free:
            free.append(len(self.registers))
            self.registers.append(kind)
        return Home("register", free.pop())

    def _release(self, number: int) -> None:
        """Free registers that are read here for the last time, unless the scalar has taken one of them over."""
        taken = self.homes[number]
        ending = {a for a in self.loop.instructions[number].args if self._ends(a, number)}
        ending |= set() if number in self.last else {number}
        for home in {self.homes[a] for a in ending if a == number or self.homes[a] != taken}:
            if home.kind == "register":
                self.free.setdefault(self.registers[home.number], []).append(home.number)

    def _ends(self, argument: int, number: int) -> bool:
        return self.last[argument] == number and self.homes[argument].kind == "register"


def register_of(instruction: Instruction) -> Register:
    """Return the kind of register that holds a scalar."""
    return Register(Level.ELEMENT if instruction.level == Level.ELEMENT else Level.ROW, instruction.type)


#: what a slot holds, seen otherwise in a block of some shape
SlotView = Callable[[Any, tuple[int, ...]], Any]

#: for functions of one block: whoever goes through the blocks looks at the deadline
_UNWATCHED = RunContext(np)


class _SlotCall(NamedTuple):
    """Call by the slots of its arguments; `out` is the one that is given by name, if any is."""

    function: Callable[..., Any]
    args: Callable[[Sequence[Any]], tuple[Any, ...]]
    out: int | None


class BlockProgram:
    """A kernel, its numbers of the dtype `number`, as ufuncs from slot to slot: the same for all blocks and arrays.

    The first slots are the operands, the results, the registers of `plan`, and the values of `spread`: numbers that
    depend on no operand, each an array as large as the block where there is one. Raises TypeError for what only
    compiled kernels have.
    """

    def __init__(self, loop: FusedKernel, number: np.dtype[Any], plan: Registers) -> None:
        self.loop, self.number = loop, number
        self.homes, registers = plan
        self.registers = [(r.level, dtype_of(r, number)) for r in registers]
        spread = spread_scalars(loop, plan)
        results = len(loop.operands)
        self._starts = {"operand": 0, "result": results, "register": results + len(loop.results)}
        first = self._starts["register"] + len(registers)
        self._spread_slots = {n: first + i for i, n in enumerate(spread)}
        self._arrays = first + len(spread)
        #: what slots behind the arrays hold; None where a view of another slot is put
        self._rest: list[Any] = []
        self._views: list[tuple[int, SlotView, int]] = []
        self._known: dict[tuple[SlotView, int], int] = {}
        self._slots: dict[int, int] = {}
        self._calls: list[_SlotCall] = []
        for n in self.homes:
            self._write_scalar(n)
        self.spread: list[HostArray] = [self._rest[self._slots[n] - self._arrays] for n in spread]

    @property
    def is_one_ufunc(self) -> bool:
        """Whether one call of a ufunc is all: what needs no memory, whatever the size."""
        return len(self._calls) == 1 and not self.registers and isinstance(self._calls[0].function, np.ufunc)

    def calls(self, arrays: Sequence[HostArray], shape: tuple[int, ...]) -> list[KernelCall]:
        """Bind the calls for a block of this shape to its operands, results, registers and spread numbers, `arrays`."""
        slots = [*arrays, *self._rest]
        for slot, view, of in self._views:
            slots[slot] = view(slots[of], shape)
        return [
            (function if out is None else partial(function, out=slots[out]), args(slots))
            for function, args, out in self._calls
        ]

    def memory(self, shape: tuple[int, ...]) -> list[HostArray]:
        """Allocate registers for a block of this shape."""
        per_row = (*shape[:-1], 1)
        return [np.empty(shape if level == Level.ELEMENT else per_row, dtype) for level, dtype in self.registers]

    def _write_scalar(self, n: int) -> None:
        """Write the calls that compute a scalar, and those by which results take it."""
        instruction, home = self.loop.instructions[n], self.homes[n]
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
        read = [self._rest[self._slots[a] - self._arrays] for a in instruction.args]
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
            rest = [self._fixed(each) for each in (-1, None)]
            row = self._view(_as_elements, *read)
            self._call(getattr(np, FOLDS[op]).reduce, row, *rest, out, self._fixed(True))
        elif op in ("select", "choose"):
            self._select(instruction.type, out, *read)
        elif op in BY_NAME:
            wide = self._spread_slots if instruction.level == Level.ELEMENT else {}
            read = [wide.get(a, self._slots[a]) for a in instruction.args]
            self._call(ufunc_of(np, op), *read, by_name=out)
        else:
            self._call(ufunc_of(np, op), *read, out)

    def _select(self, type: Scalars, out: int, cond: int, on_true: int, on_false: int) -> None:
        """Choose one of two by the bits in which they differ; pairs, which are too wide for that, by a copy.

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
        """Copy or add up a scalar that is not computed in the place of its results."""
        for j, result in enumerate(self.loop.results):
            if result.value != n or self.homes[n] == ("result", j):
                continue
            held, value = self._starts["result"] + j, self._slots[n]
            if not result.adds_up:
                self._call(np.copyto, held, value, self._fixed("unsafe"))
            elif result.kind == "columns":
                axes = self._view(_row_axes, value)
                self._call(np.add.reduce, self._view(_as_elements, value), axes, self._fixed(None), held)
            else:
                none = self._fixed(None)
                self._call(np.add.reduce, self._view(_as_rows, value), none, none, held)

    def _call(self, function: Callable[..., Any], *slots: int, by_name: int | None = None) -> None:
        self._calls.append(_SlotCall(function, itemgetter(*slots), by_name))

    def _fixed(self, value: Any) -> int:
        """Make a slot that holds the same in every block."""
        self._rest.append(value)
        return self._arrays + len(self._rest) - 1

    def _view(self, view: SlotView, of: int) -> int:
        """Make a slot for a view of another."""
        if of >= self._arrays and view in (_bits, _truth):
            return self._fixed(view(self._rest[of - self._arrays], ()))
        if (view, of) not in self._known:
            self._known[view, of] = slot = self._fixed(None)
            self._views.append((slot, view, of))
        return self._known[view, of]


def dtype_of(scalar: Register | Instruction | KernelOperand, number: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that holds a scalar in a kernel whose numbers are of the dtype `number`."""
    if scalar.type == "pair":
        return np.result_type(number, np.complex64)
    return np.dtype(bool) if scalar.type == "bool" else number


def _copy_where(out: HostArray, x: HostArray, cond: HostArray) -> None:
    np.copyto(out, x, where=cond)


def spread_scalars(loop: FusedKernel, plan: Registers) -> list[int]:
    """List the numbers without operands that NumPy would rather have written out for a whole block."""
    computed = (loop.instructions[n] for n in plan.homes)
    # NumPy is 4 times faster at these with an array as large as the result than with a single number.
    used = {a for each in computed if each.level == Level.ELEMENT and each.op in BY_NAME for a in each.args}
    return sorted(n for n in used if plan.homes[n].kind == "constant")


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
