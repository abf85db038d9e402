"""The tensors that callers have stored: their present versions, without their elements."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from engine import printable
from service.errors import Refusal
from service.state.table import Quota, Table, TableKey

#: bytes that a tensor takes beside its elements
TENSOR_OVERHEAD: Final = 500
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
NAMES: Final = "1 to 128 letters, digits, dots, dashes and underscores, of which the first is no dot and no dash"


class VersionRoom(Protocol):
    """Memory that a version lies in, where workers see it."""

    view: memoryview

    def give_back(self) -> None:
        """The memory may serve another. May be called twice."""


@dataclass(frozen=True, eq=False, slots=True)
class TensorVersion:
    """One version of a tensor: what it is, and where its elements lie, row-major and little-endian."""

    dtype: str
    shape: tuple[int, ...]
    etag: str
    room: VersionRoom
    nbytes: int


#: told of each tensor that has a new version, or None any more
Placed = Callable[[str, str, TensorVersion | None], None]


class TensorTable(Table[TensorVersion]):
    """Present versions by namespace and name."""

    plural = "tensors"

    def __init__(self, quota: Quota, placed: Placed) -> None:
        super().__init__(quota, lambda version: TENSOR_OVERHEAD + version.nbytes)
        self._placed = placed

    def get(self, namespace: str, name: str) -> TensorVersion:
        """The present version. Raises Refusal: not_found, invalid_field."""
        check_name(name)
        found = self.find((namespace, name))
        if found is None:
            raise no_tensor(name)
        return found

    def settle(self, key: TableKey, value: TensorVersion | None) -> None:
        """From now on, this is what jobs read."""
        super().settle(key, value)
        self._placed(*key, value)

    def load(self, key: TableKey, value: TensorVersion | None) -> None:
        """Take up what was kept before."""
        super().load(key, value)
        self._placed(*key, value)


def check_name(name: str) -> None:
    """Return for what can be a tensor's name. Raises Refusal: invalid_field."""
    if not _NAME.fullmatch(name):
        shown = printable(name)
        detail = f"a tensor cannot be called “{shown}”; a name has {NAMES}"
        raise Refusal("invalid_field", detail, expected=NAMES, got=shown)


def no_tensor(name: str) -> Refusal:
    """The report for a tensor that is not there."""
    shown = printable(name)
    detail = f"there is no tensor “{shown}”; PUT /v1/tensors/{shown} stores one, and GET /v1/tensors lists all"
    return Refusal("not_found", detail, expected="the name of a stored tensor", got=shown)
