"""Names of the standard that the namespace lacks, with what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

from gradserve_client.recording.lines import RecordingError, users_line


class NotRecorded(RecordingError, AttributeError):
    """A function of the standard that no op can express. It is an AttributeError, so that `hasattr` returns False."""


SHAPES: Final = "the shape of its result depends on data, which graphs do not support"
_BITS: Final = "no op works on bits"
_WIRE: Final = "the server does not support this dtype: use"
_SPECTRUM: Final = "no op computes eigenvalues except of symmetric matrices: use eigh() or eigvalsh()"

#: names missing in the main namespace
MAIN: Final[Mapping[str, str]] = {
    "unique_all": f"{SHAPES}; sort() puts equal elements side by side",
    "unique_counts": f"{SHAPES}; sort() puts equal elements side by side",
    "unique_inverse": f"{SHAPES}; sort() puts equal elements side by side",
    "unique_values": f"{SHAPES}; sort() puts equal elements side by side",
    "bitwise_left_shift": f"{_BITS}; write x * 2**n",
    "bitwise_right_shift": f"{_BITS}; write x // 2**n",
    "nextafter": f"{_BITS}; write x * (1 + eps), with eps of finfo()",
    "from_dlpack": "a recorded array has no memory yet; asarray() accepts NumPy arrays",
    "uint16": f"{_WIRE} int32",
    "uint64": f"{_WIRE} int64",
}
#: names missing in `linalg`
LINALG: Final[Mapping[str, str]] = {
    "eig": _SPECTRUM,
    "eigvals": _SPECTRUM,
}


def refuse(name: str, qualified_name: str, missing: Mapping[str, str]) -> NoReturn:
    """Raise NotRecorded for a name of the standard, and AttributeError for any other name."""
    if name in missing:
        raise NotRecorded(f"{qualified_name} ({users_line()}): {missing[name]}")
    raise AttributeError(f"the Array API standard has no {qualified_name}")
