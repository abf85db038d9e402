"""The base of all kinds: what is asked of the values of an attribute, wherever these go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final

from engine.ir.tensor_type import DType, HostArray, TensorType

#: what stands for an attribute in a document of JSON Schema
JsonSchema = dict[str, Any]

#: types, entries of a list and characters beyond which nothing is remembered, so that each entry is small
LONGEST_REMEMBERED: Final = 64


class AttributeKind(ABC):
    """Kind of attributes: how their values are checked, verified, printed, sent, documented and told apart.

    A value is *stated* as a client writes it in JSON, its tensors read; it is *bound* in the form that rules receive.
    """

    #: as declarations say it
    name: ClassVar[str]
    #: where it stands when people are shown all kinds
    position: ClassVar[int]
    #: what a refusal says is wanted, and roughly, where what was sent is nothing like it
    wanted: ClassVar[str]
    roughly: ClassVar[str]
    #: Python's types of bound values, where no other kind has them: keys are told by these
    forms: ClassVar[tuple[type, ...]] = ()
    #: values as clients may state them, from which tests draw
    samples: ClassVar[tuple[Any, ...]]
    #: has entries, of which there may be too many
    is_list: ClassVar[bool] = False
    #: sent as an object, which nothing else is
    is_object: ClassVar[bool] = False

    @property
    def spelling(self) -> str:
        """Name of the kind for clients."""
        return self.name

    # ---------------------------------------------------------------- checked, and verified

    def admits(self, stated: Any) -> bool:
        """Whether it is one of these values, whatever an attribute asks beyond that: by default, by its type."""
        return isinstance(stated, self.forms)

    def bound(self, stated: Any) -> Any:
        """Return an admitted value in the form that rules receive."""
        return stated

    def is_bound(self, value: Any) -> bool:
        """Whether it has that form, to the type."""
        return type(value) in self.forms

    def typed(self, value: Any, dtype: DType) -> Any:
        """The bound value as ops of `dtype` have it: a number is one of that dtype."""
        return value

    def dtype_of(self, value: Any) -> DType | None:
        """The dtype that a bound value names, or has: not all graphs have all of them."""
        return None

    # ---------------------------------------------------------------- printed

    def stated(self, value: Any) -> Any:
        """A bound value as a client states it."""
        return value

    def printed(self, value: Any) -> Any:
        """Return a bound value as JSON, for a graph's text."""
        return self.stated(value)

    def parsed(self, printed: Any, type: TensorType) -> Any:
        """The bound value of a text, of a node with a result of this type."""
        return self.bound(printed)

    # ---------------------------------------------------------------- sent, and documented

    @abstractmethod
    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the JSON Schema of a sent value; `tensor` stands for a tensor's own message."""

    def from_wire(self, sent: Any, tensor: Callable[[Any], HostArray]) -> Any:
        """Return a sent value as stated; `tensor` reads a tensor's message."""
        return sent

    def written(self, stated: Any, tensor: Callable[[HostArray], Any]) -> Any:
        """Return a stated value as sent; `tensor` writes a tensor's message."""
        return stated

    # ---------------------------------------------------------------- told apart

    def canonical(self, value: Any) -> Any:
        """A bound value in the text whose hash is a graph's id: as JSON that all languages write alike."""
        return self.stated(value)

    def key(self, value: Any) -> Hashable:
        """A hashable stand-in for a bound value, that tells types and bits apart."""
        return type(value).__name__, value

    def is_remembered(self, value: Any) -> bool:
        """Whether a bound value is told apart in no time, and takes no memory to speak of."""
        return True
