"""Card recipe: the phases that a GPU launches for one node, the memory that they work in, and the text of kernels."""

from __future__ import annotations

from typing import Literal, NamedTuple

from engine.cards.cudnn_plans import CudnnPlan
from engine.graph.precision import IEEE, Precision
from engine.loops.cuda_launch import Extent
from engine.microkernels.product import Product

CardPlaceKind = Literal["operand", "result", "workspace", "flag"]


class CardPlace(NamedTuple):
    """Place of something on the card: `offset` bytes behind the first element of an operand or a result, by its
    number, behind the beginning of the workspace, or behind the flag of the node: an int32 that is 0 before a run.
    """

    kind: CardPlaceKind
    number: int = 0
    offset: int = 0


class LaunchPhase(NamedTuple):
    """A launch of `kernel`, one of those in the recipe's text, which takes a table of 64-bit entries by value.

    An entry is a number, or the address of a place. `grid` has blocks along x and y, `block` threads along these.
    """

    kernel: str
    grid: Extent
    block: Extent
    table: tuple[int | CardPlace, ...]


class ProductPhase(NamedTuple):
    """c = a · b, or, where it `adds`, c += a · b; to each row the numbers at `bias` are added, where there are some.

    With `widens`, of float16 operands c holds float32, and its strides count such: for sums that go on. `precision` is
    how float32 operands are read; `tf32x3` is several phases on parts of them, and in one as float32.
    """

    of: Product
    a: CardPlace
    b: CardPlace
    c: CardPlace
    adds: bool = False
    bias: CardPlace | None = None
    widens: bool = False
    precision: Precision = IEEE


class CudnnPhase(NamedTuple):
    """A plan of cuDNN's: where the tensors lie, by the number that its graph has for each, and where it works."""

    plan: CudnnPlan
    tensors: tuple[tuple[int, CardPlace], ...]
    workspace: CardPlace


class ClearPhase(NamedTuple):
    """`nbytes` at a place become 0."""

    at: CardPlace
    nbytes: int


Phase = LaunchPhase | ProductPhase | CudnnPhase | ClearPhase


class CardRecipe(NamedTuple):
    """Phases that are launched one after the other on one stream.

    `text` is CUDA C with their kernels, which is compiled before. `workspace` is in bytes: nobody else works there
    meanwhile, and what lies there before is anything. `precision` is how all of it reads float32 operands.
    """

    phases: tuple[Phase, ...]
    text: str = ""
    workspace: int = 0
    precision: Precision = IEEE

    @property
    def notes(self) -> bool:
        """Whether its kernels may write to the node's flag."""
        launches = [phase for phase in self.phases if isinstance(phase, LaunchPhase)]
        return any(isinstance(x, CardPlace) and x.kind == "flag" for launch in launches for x in launch.table)
