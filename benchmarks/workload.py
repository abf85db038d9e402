"""What is timed: a function of a few leaves, written against any library that has `ops`' functions, and a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # `benchmarks.planning` chooses which checkout's engine is imported
    from engine.ir.run_report import Precision

Array = np.ndarray[Any, np.dtype[Any]]
#: `function(ops, *parameters, *data)`: `ops` has functions named as the engine's ops, and their attributes. Its loops
#: take Python functions: `scan(step, consts, carries, sequences, length)`, where `step(ops, consts, carries, entries)`
#: returns new carries and what is stacked, gives the last carries and the stacks; and `while_loop(condition, step,
#: consts, carries, max_steps)`, where both are asked with `(ops, consts, carries)`, the last carries
Function = Callable[..., Any]


class Unsupported(Exception):
    """A side is not asked this, for the reason given."""


class Question(Enum):
    """What is asked of a function."""

    VALUES = "its values"
    GRADIENTS = "its value, and the gradient by each parameter"
    ROWS = "its values, and for each of them the gradient of its sum by each parameter"
    JACOBIAN = "its value, and the Jacobian by the only parameter, in forward mode"
    EXAMPLES = "its value and gradients for each example by itself: all data have a leading axis"


@dataclass(frozen=True)
class Workload:
    """`function(ops, *parameters, *data)`, and what is asked of it.

    `written` has the function as one side would rather have it; it must give the same results. `without` are sides
    that are not asked, each with the reason. `extent` is the number of elements, nodes or examples,
    on a curve. `sides` are those that are asked at all, by default every one. `compiled` says whether the engine may
    compile kernels; else it runs by NumPy alone. `memory` is what the engine's plan may take, in bytes. `from_host`:
    operands and results are arrays of the host, and to copy them is a part of a call. `precision` is how products and
    convolutions may read float32 on a card, on every side. `vanishing` are the numbers of results that are zero, but
    for what is rounded on the way.
    """

    name: str
    title: str
    function: Function
    parameters: list[Array]
    data: list[Array] = field(default_factory=list)
    question: Question = Question.GRADIENTS
    written: Mapping[str, Function] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    extent: int = 0
    sides: tuple[str, ...] = ()
    compiled: bool = True
    memory: int | None = None
    from_host: bool = False
    precision: Precision = "float32"
    vanishing: tuple[int, ...] = ()

    @property
    def arrays(self) -> list[Array]:
        """All leaves, parameters first."""
        return [*self.parameters, *self.data]

    @property
    def dtype(self) -> str:
        """The dtype of the first leaf of floats, or of the parts of complex numbers."""
        return next((a.real.dtype.name for a in self.arrays if a.dtype.kind in "fc"), "float32")

    def function_for(self, side: str) -> Function:
        """The function as this side has it."""
        return self.written.get(side, self.function)


Maker = Callable[[], Workload]
#: a workload of this function; what gradients are asked of; what values are
Ways = tuple[Callable[[Function], Workload], Function, Function]


def both_ways(rows: Mapping[str, Ways]) -> dict[str, Maker]:
    """For each name the value and all gradients of a loss, and then, as `-values`, values alone."""
    return {
        name + suffix: made
        for name, (make, loss, values) in rows.items()
        for suffix, made in (("", partial(make, loss)), ("-values", partial(values_of, partial(make, values))))
    }


def values_of(make: Maker) -> Workload:
    """Values alone, by the same function on all sides."""
    work = make()
    return replace(
        work, name=f"{work.name}-values", title=f"{work.title}: values", question=Question.VALUES, written={}
    )


def normal(seed: int, *shape: int, scale: float = 1.0, dtype: str = "float32") -> Array:
    """Normally distributed numbers, the same in every run."""
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)
