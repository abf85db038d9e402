"""LLVM IR while it is written: values, labels and loops of a function, and the module about it.

It is written so that code can be generated from it as it stands: no optimisation of IR is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from engine.codegen.kernels.program import Scalars

_HEAD: Final = "define void @kernel(i64 %first, i64 %past, ptr noalias readonly %table) #0 {\nentry:"
#: no instruction of a kernel may trap, and vectors are as wide as the machine's
_ATTRIBUTES: Final = 'attributes #0 = { nounwind "prefer-vector-width"="512" "no-trapping-math"="true" }'


class LoopNames(NamedTuple):
    """Names of a loop's counter and labels; how its next counter is made, and is called, if by a name."""

    counter: str
    head: str
    body: str
    past: str
    more: str
    following: str = ""
    addition: str = "add"


class CarriedValue(NamedTuple):
    """A value that goes from one round of a loop to the next: its name there, its type, and what it is at first."""

    name: str
    type: str
    first: str


@dataclass(eq=False, slots=True)
class Assembly:
    """The text of `kernel(first, past, table)` while it is written, and what that calls. Floats are of one dtype."""

    dtype: str
    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    #: label of the block that is being written
    block: str = "entry"
    _count: int = 0

    @property
    def bits(self) -> int:
        """Width of a float, and of an int."""
        return 32 if self.dtype == "float32" else 64

    @property
    def module(self) -> str:
        """Text of the module with the function, for the host's target."""
        body = (*self.lines, "  ret void\n}", *sorted(self.declarations), _ATTRIBUTES, "")
        return "\n".join((_HEAD, *body))

    # types

    def name(self, type: Scalars, lanes: int = 0) -> str:
        """Name a type in LLVM's words; a vector, if lanes are given. Pairs are a vector, their parts by turns."""
        if type == "pair":
            return self.name("float", 2 * (lanes or 1))
        scalar = {"float": "float" if self.bits == 32 else "double", "int": f"i{self.bits}", "bool": "i1"}[type]
        return f"<{lanes} x {scalar}>" if lanes else scalar

    def stored(self, type: Scalars, lanes: int = 0) -> str:
        """Name a type as it lies in memory: a bool is a byte."""
        return self.name(type, lanes).replace("i1", "i8") if type == "bool" else self.name(type, lanes)

    def suffix(self, type: Scalars, lanes: int = 0) -> str:
        """Name the suffix of an intrinsic on a type."""
        scalar = {"float": f"f{self.bits}", "int": f"i{self.bits}", "bool": "i8"}[type]
        return f"v{lanes}{scalar}" if lanes else scalar

    # values

    def line(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def value(self, text: str, name: str = "") -> str:
        """Write an instruction, and return the name of its result: a new one, unless it is given."""
        if not name:
            self._count += 1
            name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, result: str, function: str, *takes: str) -> None:
        """Declare a function that is called."""
        self.declarations.add(f"declare {result} @{function}({', '.join(takes)})")

    def least(self, a: int | str, b: int | str, name: str = "") -> str:
        """Write the smaller of two whole numbers."""
        is_less = self.value(f"icmp slt i64 {a}, {b}", name and f"{name}.is")
        return self.value(f"select i1 {is_less}, i64 {a}, i64 {b}", name)

    def splat(self, scalar: str, type: str, lanes: int) -> str:
        """Write a vector of one scalar, of a type in LLVM's words."""
        vector = f"<{lanes} x {type}>"
        first = self.value(f"insertelement {vector} poison, {type} {scalar}, i32 0")
        return self.value(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def shuffled(self, a: str, b: str, among: int, lanes: Sequence[int]) -> str:
        """Select these lanes of two vectors of floats, of `among` each."""
        vector, numbers = self.name("float", among), ", ".join(f"i32 {i}" for i in lanes)
        return self.value(f"shufflevector {vector} {a}, {vector} {b}, <{len(lanes)} x i32> <{numbers}>")

    def part(self, pairs: str, lanes: int, which: int) -> str:
        """Select the real parts of pairs, or for 1 the imaginary ones: a scalar, if there are no lanes."""
        if not lanes:
            return self.value(f"extractelement {self.name('pair')} {pairs}, i32 {which}")
        return self.shuffled(pairs, "poison", 2 * lanes, range(which, 2 * lanes, 2))

    def paired(self, re: str, im: str, lanes: int) -> str:
        """Make pairs of these parts."""
        if lanes:
            return self.shuffled(re, im, lanes, [part * lanes + i for i in range(lanes) for part in range(2)])
        type, float = self.name("pair"), self.name("float")
        first = self.value(f"insertelement {type} poison, {float} {re}, i32 0")
        return self.value(f"insertelement {type} {first}, {float} {im}, i32 1")

    def halved(self, vector: str, lanes: int, combined: Callable[[str, str, int], str]) -> str:
        """Combine the lanes of floats: the lower half with the upper one, until there is one."""
        while lanes > 1:
            whole, lanes = lanes, lanes // 2
            low, high = (self.shuffled(vector, "poison", whole, range(k, k + lanes)) for k in (0, lanes))
            vector = combined(low, high, lanes)
        return self.value(f"extractelement {self.name('float', 1)} {vector}, i32 0")

    # control

    def label(self, name: str) -> None:
        """Go on in a block of this name."""
        self.lines.append(f"  br label %{name}\n{name}:")
        self.block = name

    def branch(self, flag: str, then: str, other: str) -> None:
        """Go on in `then` if the flag holds, else in `other`."""
        self.lines.append(f"  br i1 {flag}, label %{then}, label %{other}\n{then}:")
        self.block = then

    @contextmanager
    def when(self, flag: str, then: str, past: str) -> Iterator[None]:
        """Run what is written inside, in a block `then`, if the flag holds."""
        self.branch(flag, then, past)
        yield
        self.label(past)

    @contextmanager
    def loop(
        self,
        names: LoopNames,
        first: int | str,
        past: int | str,
        step: int | str = 1,
        carried: Sequence[CarriedValue] = (),
        metadata: str = "",
    ) -> Iterator[list[str]]:
        """Write a loop over the numbers from `first` to before `past`; after it, `carried` are those of the last round.

        The list that is yielded takes the values of the next round. The branch back has the `metadata`.
        """
        before, given = self.block, list[str]()
        self.label(names.head)
        head = len(self.lines)
        self.branch(self.value(f"icmp slt i64 {names.counter}, {past}", names.more), names.body, names.past)
        yield given
        following = self.value(f"{names.addition} i64 {names.counter}, {step}", names.following)
        counter = CarriedValue(names.counter, "i64", str(first))
        self.lines[head:head] = [
            f"  {name} = phi {type} [ {start}, %{before} ], [ {value}, %{self.block} ]"
            for (name, type, start), value in zip((counter, *carried), (following, *given), strict=True)
        ]
        self.lines.append(f"  br label %{names.head}{metadata}\n{names.past}:")
        self.block = names.past
