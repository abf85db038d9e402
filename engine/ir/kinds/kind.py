"""The base class of all attribute kinds: every operation on attribute values, wherever the values go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final

from engine.ir.tensor_type import DType, HostArray, TensorType

#: the schema of an attribute in a JSON Schema document
JsonSchema = dict[str, Any]

#: maximum number of operand types, list entries and characters in a cache key, so that each cache entry is small
LONGEST_CACHED: Final = 64


class AttributeKind(ABC):
    """Kind of attributes: how their values are checked, verified, printed, sent, documented and compared.

    A value is *stated* as a client writes it in JSON, with tensors decoded; it is *bound* in the form that rules
    receive.
    """

    #: name in declarations
    name: ClassVar[str]
    #: position in the documentation
    position: ClassVar[int]
    #: description of valid values in error messages, and a shorter one for values of a wrong JSON type
    expected: ClassVar[str]
    roughly: ClassVar[str]
    #: Python types of bound values that no other kind has; they determine the kind of a value
    forms: ClassVar[tuple[type, ...]] = ()
    #: stated values that tests draw from
    samples: ClassVar[tuple[Any, ...]]
    #: whether a value is a list, whose length is limited
    is_list: ClassVar[bool] = False
    #: whether a value is sent as a JSON object; only one kind is
    is_object: ClassVar[bool] = False

    @property
    def spelling(self) -> str:
        """The kind's name for clients."""
        return self.name

    # ---------------------------------------------------------------- checked, and verified

    def admits(self, stated: Any) -> bool:
        """Return whether a stated value is of this kind, apart from an attribute's constraints.

        By default, checks its Python type.
        """
        return isinstance(stated, self.forms)

    def hint(self, stated: Any) -> str:
        """Return a hint for a value that is not admitted; "" if there is none."""
        return ""

    def bound(self, stated: Any) -> Any:
        """Return an admitted value in the form that rules receive."""
        return stated

    def is_bound(self, value: Any) -> bool:
        """Return whether a value has exactly that form."""
        return type(value) in self.forms

    def typed(self, value: Any, dtype: DType) -> Any:
        """Return a bound value for ops of `dtype`: a number becomes one of that dtype."""
        return value

    def dtype_of(self, value: Any) -> DType | None:
        """Return the dtype that a bound value names or has, if any: older opsets lack some dtypes."""
        return None

    # ---------------------------------------------------------------- printed

    def stated(self, value: Any) -> Any:
        """Return a bound value as a client states it."""
        return value

    def printed(self, value: Any) -> Any:
        """Return a bound value as JSON, for a graph's text."""
        return self.stated(value)

    def parsed(self, printed: Any, type: TensorType) -> Any:
        """Return the bound value of a graph's text, for a node with a result of this type."""
        return self.bound(printed)

    # ---------------------------------------------------------------- sent, and documented

    @abstractmethod
    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the JSON Schema of a sent value; `tensor` is the schema of a tensor."""

    def from_wire(self, sent: Any, tensor: Callable[[Any], HostArray]) -> Any:
        """Return the stated value of a sent one; `tensor` decodes a tensor."""
        return sent

    def written(self, stated: Any, tensor: Callable[[HostArray], Any]) -> Any:
        """Return the sent value of a stated one; `tensor` encodes a tensor."""
        return stated

    # ---------------------------------------------------------------- compared

    def canonical(self, value: Any) -> Any:
        """Return a bound value for the text whose hash is a graph's id: JSON that all languages write alike."""
        return self.stated(value)

    def key(self, value: Any) -> Hashable:
        """Return a hashable key of a bound value that distinguishes types and bits."""
        return type(value).__name__, value

    def is_cacheable(self, value: Any) -> bool:
        """Return whether the key of a bound value is cheap to compute and to hold."""
        return True
