"""Sketch of what gradients will write, as forms: what is refused costs neither the time nor the memory of writing it.

A sweep over a graph is counted as a whole, in arrays, before anything of it is appended: half a microsecond for each
operand that it looks at, and for each form of nodes one run of its rule.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate, chain
from typing import Final

import numpy as np

from engine.graph.errors import DeadlineExceeded, EngineError, TooManyNodes
from engine.graph.ir import Builder, Node, Value
from engine.graph.limits import Deadline, Limits
from engine.graph.registry import Registry
from engine.graph.tensor_type import TensorType
from engine.transforms.forms import Form, Forms
from engine.transforms.pullback import Downstream, Outlined, Pullback, Seeds
from engine.transforms.ragged import Int32s, Ragged
from engine.transforms.transcript import Transcript

#: nodes to be swept over, in all, from which on it is worth to look ahead
WORTH_A_LOOK: Final = 1_000


class Sketch:
    """A graph, and what gradients append to it, of which there are types and operands alone.

    Whatever is appended has to be within `limits`: else TooManyNodes is raised, before it is.
    """

    def __init__(self, registry: Registry, limits: Limits, deadline: Deadline, nodes: Sequence[Node] = ()) -> None:
        """`nodes` are there already."""
        self._limits, self._deadline = limits, deadline
        self._forms = Forms(registry)
        #: nodes that were counted, and not appended
        self._beside = 0
        #: on what the last sweep's gradients were by, which mostly are the next one's, too
        self._downstream = Downstream(())
        self._of = array("i", self._forms.of_all(nodes))
        self._operands = array("i", chain.from_iterable([node.operands for node in nodes]))
        self._starts = array("i", accumulate([len(node.operands) for node in nodes], initial=0))

    def __len__(self) -> int:
        return len(self._of)

    def form(self, index: int) -> Form:
        """What a node says."""
        return self._forms.forms[self._of[index]]

    def operands(self, index: int) -> tuple[int, ...]:
        """The nodes that a node reads."""
        return tuple(self._operands[self._starts[index] : self._starts[index + 1]])

    def copy(self, node: Node, operands: tuple[int, ...] = ()) -> int:
        """Append a node on other operands: its number."""
        self._admit(1)
        forms, of = self._forms, self._of
        return self._add(forms.of(node, tuple([forms.forms[of[i]].types for i in operands])), operands)

    def leaf(self, like: int) -> int:
        """Append what is fed, of the type of another node."""
        self._admit(1)
        return self._add(self._forms.leaf(self.type(like)), ())

    def type(self, index: int) -> TensorType:
        """That of the (first) result of a node."""
        return self.form(index).node.types[0]

    def filled(self, like: int) -> int:
        """Append a number, repeated in the shape of another node."""
        return self.apply("filled", lambda x: x.full_like(1.0), like)

    def apply(self, name: Hashable, make: Callable[..., Value], *operands: int) -> int:
        """Append what is made of some nodes: the same, whenever it has this name and they have these types."""
        written = self._forms.made(name, make, *[self.form(i).types for i in operands])
        self._admit(len(written.forms))
        values = list(operands)
        for form, read in zip(written.forms, written.operands, strict=True):
            values.append(self._add(form, [values[i] for i in read]))
        return values[written.given[0].number]

    def vjp(self, seeds: Seeds, wrt: Sequence[int]) -> list[int | None]:
        """As the function `vjp`: where the gradients are."""
        nodes = self._outlined()
        sweep = self._sweep(nodes, seeds, wrt)
        self._admit(sweep.count)
        layout = Transcript(nodes, self._forms, sweep)
        self._extend(layout.appended())
        return layout.cotangents(wrt)

    def jvp(self, outputs: Sequence[int], wrt: Sequence[int]) -> None:
        """As the function `jvp`, along tangents of all of `wrt`; of its second sweep, only the number is looked at."""
        dummies = [self.leaf(y) for y in outputs]
        pulled = self.vjp(list(zip(outputs, dummies, strict=True)), wrt)
        self.count([(g, x) for g, x in zip(pulled, wrt, strict=True) if g is not None], dummies)

    def count(self, seeds: Seeds, wrt: Sequence[int], *, swept: bool = False) -> None:
        """Look how many nodes `vjp` appends, and count them as there, but append none.

        Those of products that are `swept` over unit vectors in place of the seeds count once more, where they are
        elementwise: of these alone it is certain that batching writes a node.
        """
        sweep = self._sweep(self._outlined(), seeds, wrt)
        self._beside += sweep.count
        self._admit(0)
        if swept:
            self._beside += sweep.mapped()
            self._admit(0)

    def _sweep(self, nodes: Outlined, seeds: Seeds, wrt: Sequence[int]) -> Pullback:
        self._deadline.check()
        if self._downstream.wrt != tuple(wrt):
            self._downstream = Downstream(wrt)
        return Pullback(nodes, self._forms, seeds, self._downstream)

    def _admit(self, count: int) -> None:
        self._limits.admit_nodes(len(self) + self._beside + count)

    def _add(self, form: int, operands: Sequence[int]) -> int:
        self._of.append(form)
        self._operands.extend(operands)
        self._starts.append(len(self._operands))
        return len(self._of) - 1

    def _outlined(self) -> Outlined:
        """All nodes, as they are now."""
        return Outlined(_copied(self._of), Ragged(_copied(self._operands), _copied(self._starts)))

    def _extend(self, nodes: Outlined) -> None:
        starts = nodes.operands.starts[1:] + np.int32(len(self._operands))
        self._of.frombytes(nodes.forms.tobytes())
        self._operands.frombytes(nodes.operands.flat.tobytes())
        self._starts.frombytes(starts.tobytes())


def look_ahead(builder: Builder, work: int, look: Callable[[Sketch], object]) -> None:
    """Look at what will be appended to a builder's nodes. Raises TooManyNodes, as writing would, before any is written.

    `work` is how many nodes there are to be swept over in all: of few, nothing is looked at. What else may be wrong is
    left for writing to find.
    """
    if work < WORTH_A_LOOK:
        return
    try:
        look(Sketch(builder.registry, builder.limits, builder.deadline, builder.nodes))
    except (TooManyNodes, DeadlineExceeded):
        raise
    except EngineError:
        return


def _copied(numbers: array[int]) -> Int32s:
    return np.array(numbers, np.int32)
