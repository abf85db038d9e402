"""What the namespace says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording import data_types, missing
from gradserve_client.recording.recorder import DType

DEVICE: Final = "server"
#: axes that a server admits unless it is told otherwise
_MOST_AXES: Final = 32


class NamespaceInfo:
    """Capabilities, devices and dtypes, as the standard asks for them; and what is missing."""

    def capabilities(self) -> dict[str, Any]:
        """What shapes may depend on: never on data."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": _MOST_AXES}

    def default_device(self) -> str:
        """The only device."""
        return DEVICE

    def devices(self) -> list[str]:
        """The only device."""
        return [DEVICE]

    def default_dtypes(self, *, device: object = None) -> dict[str, DType]:
        """What numbers of Python's become."""
        integral = data_types.int64
        return {
            "real floating": data_types.float64,
            "complex floating": data_types.complex128,
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(self, *, device: object = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes of a kind, by name; beside those of the standard there is float16."""
        try:
            return {name: dtype for name, dtype in data_types.ALL.items() if kind is None or np.isdtype(dtype, kind)}
        except ValueError as error:
            raise InputError(str(error)) from None

    def missing(self) -> Mapping[str, str]:
        """What the namespace lacks of the standard, and what to write instead."""
        return {**missing.MAIN, **{f"linalg.{name}": instead for name, instead in missing.LINALG.items()}}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """Capabilities, devices, dtypes, and what is missing."""
    return NamespaceInfo()
