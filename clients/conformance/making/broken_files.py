"""Safetensors files that are unusual but valid, and invalid ones."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from clients.conformance.bits import LENGTH, Bits, Json, bits_of, file_of, little_endian

#: maximum header length that a client reads
LONGEST_HEADER: Final = 100_000_000
_T: Final = np.array([1.5, -2.5])
_DATA: Final = little_endian(_T)
_BITS: Final = bits_of(_T)


def _entry(dtype: Any = "F64", shape: Any = (2,), span: Any = (0, 16)) -> Json:
    return {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data_offsets": list(span)}


def _unpadded(header: Json, data: bytes) -> bytes:
    """Return a file whose data begins at a byte that is not a multiple of 8."""
    text = json.dumps(header)
    return file_of(text + " " * ((1 - len(text)) % LENGTH), data, align=1)


def _complex(names: Any, **entries: Json) -> Json:
    """Return a header that lists complex tensors."""
    return {"__metadata__": {"complex": names if isinstance(names, str) else json.dumps(names)}, **entries}


_Z: Final = np.array([1.5 - 2.5j])
_Z64: Final = np.array([1.5 - 2.5j, 0.25j], "complex64")
_PAIRS: Final = _entry("F64", (1, 2))
_MANY: Final = {
    "a": _entry("I8", (3,), (0, 3)),
    "t": _entry("F64", (2,), (3, 19)),
    "none": _entry("F32", (0, 5), (19, 19)),
    "z": _entry("BOOL", (), (19, 20)),
}
_TURNED: Final = {"t": _entry(span=(8, 24)), "u": _entry("I64", (), (0, 8))}

ODD_FILES: Final[dict[str, tuple[bytes, Bits]]] = {
    "file-with-metadata": (file_of({"__metadata__": {"note": "é"}, "t": _entry()}, _DATA), _BITS),
    "file-with-others": (file_of(_MANY, b"\1\2\3" + _DATA + b"\1"), _BITS),
    "file-in-another-order": (file_of(_TURNED, bytes(8) + _DATA), _BITS),
    "file-askew": (_unpadded({"t": _entry()}, _DATA), _BITS),
    "file-of-complex-numbers": (file_of(_complex(["t"], t=_PAIRS), _DATA), bits_of(_Z)),
    "file-of-a-complex-number": (file_of(_complex(["t"], t=_entry("F64", (2,))), _DATA), bits_of(_Z[0])),
    "file-of-no-complex-number": (
        file_of(_complex(["t"], t=_entry("F32", (3, 0, 2), (0, 0))), b""),
        bits_of(np.zeros((3, 0), "complex64")),
    ),
    "file-of-c64": (file_of({"t": _entry("C64", (2,))}, little_endian(_Z64)), bits_of(_Z64)),
    "file-of-c64-beside-others": (
        file_of(_complex(["u"], t=_entry("C64", (2,)), u=_entry("F64", (2,), (16, 32))), little_endian(_Z64) + _DATA),
        bits_of(_Z64),
    ),
    "file-of-numbers-beside-complex-ones": (
        file_of(_complex(["u"], t=_PAIRS, u=_entry("F64", (1, 2), (16, 32))), _DATA + _DATA),
        bits_of(_T.reshape(1, 2)),
    ),
    "file-of-names-of-none": (file_of(_complex([], t=_entry()), _DATA), _BITS),
    "file-with-an-unknown-member": (file_of({"t": _entry() | {"codec": "none"}}, _DATA), _BITS),
}

#: shapes that no array can have, although those with an extent of 0 match empty data
HUGE_SHAPES: Final[dict[str, list[int]]] = {
    "huge-and-empty": [2**62, 0],
    "empty-and-huge": [0, 2**62],
    "twice-huge-and-empty": [2**62, 2**62, 0],
    "huge-by-all-extents": [2**20, 2**20, 2**10, 0],
    "huge": [2**62, 2**62],
}

BROKEN_FILES: Final[dict[str, bytes]] = {
    "nothing": b"",
    "shorter-than-a-length": b"\2\0\0",
    "header-longer-than-the-file": (1000).to_bytes(LENGTH, "little") + b"{}",
    "header-too-long": (LONGEST_HEADER + 1).to_bytes(LENGTH, "little") + b"{}",
    "header-of-2-to-63": (2**63).to_bytes(LENGTH, "little") + b"{}",
    "header-of-all-there-is": (2**64 - 1).to_bytes(LENGTH, "little") + b"{}",
    "header-empty": bytes(8),
    "header-no-json": file_of("{no json}", b""),
    "header-no-utf-8": (4).to_bytes(LENGTH, "little") + b'{"\xff}',
    "header-no-object": file_of("[]", b""),
    "header-cut": file_of(json.dumps({"t": _entry()})[:-3], _DATA),
    "no-tensor-of-the-name": file_of({"u": _entry()}, _DATA),
    "entry-no-object": file_of({"t": 1}, b""),
    "dtype-unknown": file_of({"t": _entry("BF16", (8,))}, _DATA),
    "dtype-of-another-size": file_of({"t": _entry("F8_E4M3", (16,))}, _DATA),
    "dtype-missing": file_of({"t": {"shape": [2], "data_offsets": [0, 16]}}, _DATA),
    "dtype-as-numpy-has-it": file_of({"t": _entry("float64")}, _DATA),
    "shape-missing": file_of({"t": {"dtype": "F64", "data_offsets": [0, 16]}}, _DATA),
    "shape-negative": file_of({"t": _entry(shape=(-2,))}, _DATA),
    "shape-both-negative": file_of({"t": _entry(shape=(-1, -2))}, _DATA),
    "shape-fraction": file_of({"t": _entry(shape=[2.5])}, _DATA),
    "shape-string": file_of({"t": _entry(shape="2")}, _DATA),
    "shape-larger": file_of({"t": _entry(shape=(3,))}, _DATA),
    "shape-smaller": file_of({"t": _entry(shape=(1,))}, _DATA),
    "shape-overflow": file_of({"t": _entry("U8", (2**32, 2**32), (0, 0))}, b""),
    "shape-overflow-of-bytes": file_of({"t": _entry("F64", (2**61,), (0, 0))}, b""),
    **{f"shape-{name}": file_of({"t": _entry("F64", shape, (0, 0))}, b"") for name, shape in HUGE_SHAPES.items()},
    "shape-too-many-axes": file_of({"t": _entry("U8", (1,) * 65, (0, 1))}, b"\0"),
    "shape-beyond-64-bits": file_of({"t": _entry("U8", (2**64 + 16,), (0, 16))}, _DATA),
    "offsets-missing": file_of({"t": {"dtype": "F64", "shape": [2]}}, _DATA),
    "offsets-one": file_of({"t": _entry(span=(16,))}, _DATA),
    "offsets-three": file_of({"t": _entry(span=(0, 16, 16))}, _DATA),
    "offsets-reversed": file_of({"t": _entry(span=(16, 0))}, _DATA),
    "offsets-negative": file_of({"t": _entry(span=(-16, 0))}, _DATA),
    "offsets-behind-the-end": file_of({"t": _entry(span=(0, 16))}, _DATA[:8]),
    "offsets-beyond-64-bits": file_of({"t": _entry(span=(0, 2**64 + 16))}, _DATA),
    "offsets-string": file_of({"t": _entry(span=("0", "16"))}, _DATA),
    "gap-in-front": file_of({"t": _entry(span=(8, 24))}, bytes(8) + _DATA),
    "gap-between": file_of({"t": _entry(), "u": _entry(span=(24, 40))}, _DATA + bytes(8) + _DATA),
    "gap-behind": file_of({"t": _entry()}, _DATA + bytes(8)),
    "overlap": file_of({"t": _entry(), "u": _entry(span=(8, 24))}, _DATA + bytes(8)),
    "the-same-bytes-twice": file_of({"t": _entry(), "u": _entry()}, _DATA),
    "complex-axis-of-one": file_of(_complex(["t"], t=_entry("F64", (2, 1))), _DATA),
    "complex-axis-in-front": file_of(_complex(["t"], t=_entry("F32", (2, 4), (0, 32))), _DATA + _DATA),
    "complex-without-axes": file_of(_complex(["t"], t=_entry("F64", (), (0, 8))), _DATA[:8]),
    "complex-empty-and-of-three": file_of(_complex(["t"], t=_entry("F32", (0, 3), (0, 0))), b""),
    "complex-axis-of-none": file_of(_complex(["t"], t=_entry("F64", (2, 0), (0, 0))), b""),
    "complex-of-whole-numbers": file_of(_complex(["t"], t=_entry("I64", (1, 2))), _DATA),
    "complex-of-float16": file_of(_complex(["t"], t=_entry("F16", (4, 2))), _DATA),
    "complex-of-c64": file_of(_complex(["t"], t=_entry("C64", (2,))), _DATA),
    "complex-that-is-not-there": file_of(_complex(["u"], t=_entry()), _DATA),
    "complex-no-list": file_of(_complex("t", t=_PAIRS), _DATA),
    "complex-null": file_of(_complex("null", t=_PAIRS), _DATA),
    "complex-an-object": file_of(_complex('{"t": true}', t=_PAIRS), _DATA),
    "complex-of-no-names": file_of(_complex([0], t=_PAIRS), _DATA),
    "complex-no-string": file_of({"__metadata__": {"complex": ["t"]}, "t": _PAIRS}, _DATA),
    "dtype-c128": file_of({"t": _entry("C128", (1,))}, _DATA),
    "dtype-nameless": file_of({"t": _entry("", (1,))}, _DATA),
    "bool-two": file_of({"t": _entry("BOOL", (2,), (0, 2))}, b"\1\2"),
}
