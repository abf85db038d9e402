"""The inspection functions of the namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording import data_types, missing
from gradserve_client.recording.recorder import DType

DEVICE: Final = "server"
#: the server's default limit on the number of axes
_MAX_AXES: Final = 32


class NamespaceInfo:
    """The inspection API of the standard: capabilities, devices and dtypes; and the names that are missing."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities. Shapes never depend on data."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": _MAX_AXES}

    def default_device(self) -> str:
        """Return the only device."""
        return DEVICE

    def devices(self) -> list[str]:
        """Return a list of the only device."""
        return [DEVICE]

    def default_dtypes(self, *, device: object = None) -> dict[str, DType]:
        """Return the dtypes that Python numbers become."""
        integral = data_types.int64
        return {
            "real floating": data_types.float64,
            "complex floating": data_types.complex128,
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(self, *, device: object = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """Return the dtypes of a kind by name: those of the standard, and float16."""
        try:
            return {name: dtype for name, dtype in data_types.ALL.items() if kind is None or np.isdtype(dtype, kind)}
        except ValueError as error:
            raise InputError(str(error)) from None

    def missing(self) -> Mapping[str, str]:
        """Return the names of the standard that the namespace lacks, with what to write instead."""
        return {**missing.MAIN, **{f"linalg.{name}": instead for name, instead in missing.LINALG.items()}}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """Return the inspection object: capabilities, devices, dtypes, and missing names."""
    return NamespaceInfo()
