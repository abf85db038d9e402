"""Stored findings: a request in its wire form, the reason why it is stored, and its expected outcome.

A tensor whose elements are mostly equal has a short form: `{"dtype", "shape", "all", "but"}`, where `but` has the other
elements by their index, in memory order.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from service.api.tensors import encode
from tests.fuzz.asking import Refused
from tests.fuzz.graphs import Request
from tests.fuzz.shrink import array_of
from tests.fuzz.trying import Finding, Tried
from tests.fuzz.values import Array

FOLDER: Final = Path(__file__).parent / "kept"
#: fewest elements of a tensor in the short form
_LONG: Final = 8


class Kept(NamedTuple):
    """A request, a comment, and the expected answer: the report that refuses it, or a few results."""

    comment: str
    request: Request
    refused: Refused | None
    results: list[Array]

    @classmethod
    def read(cls, path: Path) -> Kept:
        """Read a file of the folder."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        request = Request(fields["call"], _mapped(fields["body"], _whole))
        results = [array_of(tensor) for tensor in _mapped(fields["results"], _whole)]
        return cls(fields["comment"], request, fields["refused"] and Refused(**fields["refused"]), results)

    def write(self, path: Path) -> None:
        """Write a file of the folder."""
        fields = {
            "comment": self.comment,
            "call": self.request.call,
            "refused": self.refused and self.refused._asdict(),
            "results": _mapped([encode(array, "base64") for array in self.results], _short),
            "body": _mapped(self.request.body, _short),
        }
        path.write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")

    def differs(self, tried: Tried) -> list[Finding]:
        """The findings of a run that differ from the expected outcome."""
        if tried.refused == self.refused:
            return tried.findings
        return [*tried.findings, Finding("kept", f"{tried.refused}, and not {self.refused}")]


def kept_files() -> list[Path]:
    """The files of all stored findings."""
    return sorted(FOLDER.glob("*.json"))


def _mapped(value: Any, change: Any) -> Any:
    """Apply a change to every tensor in a JSON value."""
    if isinstance(value, dict):
        is_tensor = "dtype" in value and {"data", "data_b64", "all"} & value.keys()
        return change(value) if is_tensor else {key: _mapped(each, change) for key, each in value.items()}
    return [_mapped(each, change) for each in value] if isinstance(value, list) else value


def _short(tensor: dict[str, Any]) -> dict[str, Any]:
    array = array_of(tensor)
    if array.dtype.kind == "c":
        return tensor
    flat = [_spelled(x) for x in array.reshape(-1)]
    if not flat or len(flat) < _LONG:
        return tensor
    usual, often = Counter(flat).most_common(1)[0]
    if 4 * (len(flat) - often) > len(flat):
        return tensor
    but = {str(i): x for i, x in enumerate(flat) if x != usual}
    return {"dtype": array.dtype.name, "shape": list(array.shape), "all": usual, "but": but}


def _spelled(x: Any) -> str:
    return float(x).hex() if x.dtype.kind == "f" else str(int(x))


def _whole(tensor: dict[str, Any]) -> dict[str, Any]:
    if "all" not in tensor:
        return tensor
    dtype = np.dtype(tensor["dtype"])
    read = float.fromhex if dtype.kind == "f" else int
    array: Array = np.full(tensor["shape"], read(tensor["all"]), dtype)
    for place, x in tensor["but"].items():
        array.reshape(-1)[int(place)] = read(x)
    return encode(array, "base64")
