"""The tensors that callers have stored: their present versions, without their elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.allocation import Allocation
from service.state.table import Quota, Share, Table, TableKey
from service.state.tensor_names import unknown_tensor
from service.state.values import nbytes_of

#: bytes that a tensor takes beside its elements
TENSOR_OVERHEAD: Final = 500


@dataclass(frozen=True, eq=False, slots=True)
class TensorVersion:
    """One version of a tensor. The view of `memory` holds its elements, row-major and little-endian, and nothing else.

    They are written once, before anybody is told. A view that was taken of them stays what it is for as long as anybody
    holds it, also when the memory has been given back.
    """

    dtype: str
    shape: tuple[int, ...]
    etag: str
    memory: Allocation

    @property
    def nbytes(self) -> int:
        """The bytes that its elements take, also once the memory has been given back."""
        return nbytes_of(self.dtype, self.shape)


#: told of each tensor that has a new version, or None any more
Placed = Callable[[str, str, TensorVersion | None], None]


class TensorTable(Table[TensorVersion]):
    """Present versions by namespace and name."""

    plural = "tensors"

    def __init__(self, quota: Quota, placed: Placed, share: Share | None = None) -> None:
        super().__init__(quota, lambda version: TENSOR_OVERHEAD + version.nbytes, share)
        self._placed = placed

    def get(self, namespace: str, name: str) -> TensorVersion:
        """The present version. Raises Refusal: not_found."""
        found = self.find((namespace, name))
        if found is None:
            raise unknown_tensor(name)
        return found

    def settle(self, key: TableKey, value: TensorVersion | None) -> None:
        """Settle a version: jobs read it from now on."""
        super().settle(key, value)
        self._placed(*key, value)

    def load(self, key: TableKey, value: TensorVersion | None) -> None:
        """Take up what was kept before."""
        super().load(key, value)
        self._placed(*key, value)
