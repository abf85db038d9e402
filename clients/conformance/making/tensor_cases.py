"""Cases of tensors encoded and decoded: all dtypes, values that are easily lost, all forms, and invalid tensors."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from clients.conformance.bits import PARTS, SAFETENSORS, Array, Bits, array_of, bits_of, to_file, to_json
from clients.conformance.cases import Case
from clients.conformance.making.broken_files import BROKEN_FILES, HUGE_SHAPES, ODD_FILES

#: largest integer that every JSON reader reads exactly
_EXACT: Final = 2**53
#: tensor size in bytes from which a client sends a file by default
_LARGE: Final = 4096
_INPUT: Final = {"error": {"type": "input"}}
_TRANSPORT: Final = {"error": {"type": "transport"}}


def tensor_cases() -> Iterator[Case]:
    """Yield all cases."""
    for dtype in SAFETENSORS:
        for name, array in _arrays(dtype):
            yield from _encodings(f"{dtype}-{name}", bits_of(array))
            yield from _decodings(f"{dtype}-{name}", bits_of(array))
    yield from _defaults()
    yield from _refused()
    yield from _read()
    yield from _broken()


def _arrays(dtype: str) -> Iterator[tuple[str, Array]]:
    """Yield named tensors of a dtype."""
    yield "zero-d", _filled(dtype, [1]).reshape(())
    yield "empty", _filled(dtype, [])
    yield "empty-of-rank-3", _filled(dtype, []).reshape(2, 0, 3)
    yield "rows", _filled(dtype, [0, 1, 1, 0, 1, 0] if dtype == "bool" else range(6)).reshape(2, 3)
    yield "rank-8", _filled(dtype, [1, 0]).reshape(1, 1, 2, 1, 1, 1, 1, 1)
    if np.dtype(dtype).kind == "f":
        yield "finite", _finite(dtype)
        yield "nonfinite", _nonfinite(dtype)
        yield "infinities", _filled(dtype, [1.0, np.inf, -np.inf])
    elif dtype in PARTS:
        yield from _complex(dtype)
    elif dtype != "bool":
        yield "extremes", _extremes(dtype)
    if dtype == "int64":
        yield "above-2-to-53", _filled(dtype, [1, _EXACT + 1])
        yield "below-2-to-53", _filled(dtype, [1, -_EXACT - 1])
        yield "beyond-2-to-53", _filled(dtype, [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 3])


def _filled(dtype: str, values: Any) -> Array:
    return np.array(list(values), dtype)


def _complex(dtype: str) -> Iterator[tuple[str, Array]]:
    """Yield zeros of all signs, numbers that are easily lost in either part, and infinity in one part only."""
    parts = PARTS[dtype]
    finite, nonfinite = _finite(parts), _nonfinite(parts)
    zeros = np.array([0.0, -0.0, -0.0, 0.0, -0.0, -0.0, 1.0, -0.0], parts)
    yield "parts", np.array([[1, 2], [-3, 0.5], [0, -1]], parts).view(dtype).reshape(3)
    yield "signs-of-zeros", zeros.view(dtype)
    yield "finite", np.stack([finite, finite[::-1]], -1).reshape(-1).view(dtype)
    yield "nonfinite", np.stack([nonfinite, nonfinite[::-1]], -1).reshape(-1).view(dtype)
    for name, pair in (("infinite-real-part", [np.inf, 1]), ("infinite-imaginary-part", [1, -np.inf])):
        yield name, np.array([0, 1, *pair], parts).view(dtype)


def _extremes(dtype: str) -> Array:
    info = np.iinfo(dtype)
    low, high = max(int(info.min), -_EXACT), min(int(info.max), _EXACT)
    return _filled(dtype, [0, 1, low, high, low + 1, high - 1])


def _finite(dtype: str) -> Array:
    """Return zeros, subnormals, the limits of normal numbers, 1 + eps, and inexact fractions, of both signs."""
    info = np.finfo(dtype)
    below_normal = np.nextafter(info.smallest_normal, info.dtype.type(0))
    positive = [0.0, info.smallest_subnormal, below_normal, info.smallest_normal, 1.0, 1.0 + info.eps, info.max]
    values = np.array([*positive, np.divide(1, 3, dtype=dtype), 0.1], dtype)
    return np.concatenate([values, -values])


def _nonfinite(dtype: str) -> Array:
    """Return infinities, quiet and signalling NaN of both signs with payloads, −0, and a number."""
    width = np.dtype(dtype).itemsize
    whole = np.dtype(f"uint{8 * width}")
    infinity = int(np.array(np.inf, dtype).view(whole))
    sign, quiet = 1 << (8 * width - 1), 1 << (np.finfo(dtype).nmant - 1)
    payloads = [infinity | quiet, sign | infinity | quiet, infinity | quiet | 0x2A, infinity | 1, sign | infinity | 5]
    bits = np.array([infinity, sign | infinity, *payloads, infinity | (quiet - 1), sign, 1], whole)
    return bits.view(dtype)


def json_keeps(bits: Bits) -> bool:
    """Return whether JSON numbers hold the elements exactly."""
    array = array_of(bits)
    if array.dtype.kind in "fc":
        return bool(np.isfinite(array).all())
    return array.dtype != np.int64 or all(abs(int(x)) <= _EXACT for x in array.reshape(-1))


def _encodings(name: str, bits: Bits) -> Iterator[Case]:
    encodings = {"json": "data" if json_keeps(bits) else "data_b64", "base64": "data_b64", "safetensors": "file"}
    for form, encoding in encodings.items():
        yield {"id": f"encode-{name}-{form}", "kind": "encode", "form": form, "tensor": bits, "want": {"as": encoding}}


def _decodings(name: str, bits: Bits) -> Iterator[Case]:
    if json_keeps(bits):
        yield _decoding(f"{name}-json", _numbers(bits), bits)
    yield _decoding(f"{name}-base64", json.dumps(to_json(bits)), bits)
    yield _opening(f"{name}-safetensors", to_file({"t": bits}), bits)


def _numbers(bits: Bits) -> str:
    """Return the tensor in JSON, with its elements or their parts as the shortest exact numbers."""
    array = array_of(bits).reshape(-1).view(PARTS.get(bits["dtype"]) or bits["dtype"])
    data = ", ".join(str(int(x)) if array.dtype.kind == "b" else str(x) for x in array)
    return f'{{"dtype": "{bits["dtype"]}", "shape": {json.dumps(bits["shape"])}, "data": [{data}]}}'


def _decoding(name: str, wire: str, bits: Bits | None) -> Case:
    want = _TRANSPORT if bits is None else {"tensor": bits}
    return {"id": f"decode-{name}", "kind": "decode", "wire": wire, "want": want}


def _opening(name: str, file: bytes, bits: Bits | None) -> Case:
    want = _TRANSPORT if bits is None else {"tensor": bits}
    return {"id": f"decode-{name}", "kind": "decode", "file": file.hex(), "want": want}


def _defaults() -> Iterator[Case]:
    """Yield tensors on both sides of the limit at which a client's default form changes."""
    for dtype, count in (("float64", 2), ("uint8", _LARGE - 1), ("uint8", _LARGE), ("float32", _LARGE // 4)):
        bits = bits_of(np.resize(np.arange(7), count).astype(dtype))
        encoding = "file" if len(bits["hex"]) >= 2 * _LARGE else "data_b64"
        name = f"encode-default-{dtype}-{count}"
        yield {"id": name, "kind": "encode", "form": "default", "tensor": bits, "want": {"as": encoding}}


def _refused() -> Iterator[Case]:
    """Yield invalid tensors, which a client refuses to send."""
    invalid = {
        "too-few-elements": {"dtype": "float64", "shape": [3], "hex": "00" * 16},
        "too-many-elements": {"dtype": "float32", "shape": [2, 1], "hex": "00" * 12},
        "no-element-of-0-d": {"dtype": "int32", "shape": [], "hex": ""},
        "half-an-element": {"dtype": "float32", "shape": [1], "hex": "00" * 2},
        "elements-of-an-empty-one": {"dtype": "int8", "shape": [0, 4], "hex": "00" * 4},
        "a-huge-empty-one": {"dtype": "float64", "shape": [2**62, 0], "hex": ""},
        "too-many-axes": {"dtype": "int8", "shape": [1] * 65, "hex": "00"},
        "dtype-complex256": {"dtype": "complex256", "shape": [1], "hex": "00" * 32},
        "half-a-complex-number": {"dtype": "complex64", "shape": [1], "hex": "00" * 4},
        "parts-as-an-axis": {"dtype": "complex64", "shape": [1, 2], "hex": "00" * 8},
        "dtype-uint16": {"dtype": "uint16", "shape": [2], "hex": "00" * 4},
        "dtype-uint64": {"dtype": "uint64", "shape": [1], "hex": "00" * 8},
        "half-an-int16": {"dtype": "int16", "shape": [1], "hex": "00"},
    }
    for name, bits in invalid.items():
        for form in ("json", "base64", "safetensors"):
            case = {"id": f"encode-refused-{name}-{form}", "kind": "encode", "form": form, "tensor": bits}
            yield case | {"want": _INPUT}


def _read() -> Iterator[Case]:
    """Yield tensors that are written in an unusual way and must be read."""
    one = bits_of(np.array([1.0, 2.0]))
    whole = bits_of(np.array([3, -4], "int32"))
    yield _decoding("unknown-member", '{"dtype": "float64", "shape": [2], "data": [1, 2], "layout": "dense"}', one)
    yield _decoding("no-payload", '{"dtype": "int8", "shape": [0, 7]}', bits_of(np.zeros((0, 7), "int8")))
    yield _decoding("members-in-any-order", '{"data": [1.0, 2e0], "shape": [2], "dtype": "float64"}', one)
    yield _decoding("whole-numbers-with-a-point", '{"dtype": "int32", "shape": [2], "data": [3.0, -4.0]}', whole)
    words = bits_of(np.array([0, 2**32 - 1], "uint32"))
    yield _decoding("words-with-a-point", '{"dtype": "uint32", "shape": [2], "data": [0.0, 4294967295.0]}', words)
    large = bits_of(_filled("int64", [_EXACT + 1, -_EXACT - 1, 2**63 - 1, -(2**63)]))
    yield _decoding("whole-numbers-beyond-2-to-53", _numbers(large), large)
    third, tenth = "0.3333333333333333333333333333", "0.1000000000000000055511151231257827"
    many = f'{{"dtype": "float64", "shape": [2], "data": [{third}, {tenth}]}}'
    yield _decoding("more-digits-than-kept", many, bits_of(np.array([1 / 3, 0.1])))
    for dtype in ("float16", "float32"):
        rounded = bits_of(np.array([0.1, -2.7], dtype))
        stated = f'{{"dtype": "{dtype}", "shape": [2], "data": [0.1, -2.7]}}'
        yield _decoding(f"rounded-to-{dtype}", stated, rounded)
    pairs = bits_of(np.array([[3 - 4j]], "complex64"))
    stated = '{"dtype": "complex64", "shape": [1, 1], "data": [3, -4.0]}'
    yield _decoding("complex-of-whole-numbers", stated, pairs)
    rounded = bits_of(np.array([0.1, -2.7], "float32").view("complex64"))
    yield _decoding("rounded-to-complex64", '{"dtype": "complex64", "shape": [1], "data": [0.1, -2.7]}', rounded)
    yield _decoding("complex-no-payload", '{"dtype": "complex128", "shape": [0]}', bits_of(np.zeros(0, "complex128")))
    for name, (file, bits) in ODD_FILES.items():
        yield _opening(name, file, bits)


def _broken() -> Iterator[Case]:
    """Yield invalid tensors, which a client refuses to read."""
    for name, wire in _broken_json().items():
        yield _decoding(f"broken-{name}", wire, None)
    for name, file in BROKEN_FILES.items():
        yield _opening(f"broken-file-{name}", file, None)


def _broken_json() -> dict[str, str]:
    four = base64.b64encode(bytes(4)).decode()
    return {
        "too-few-numbers": _stated("float64", [3], "[1, 2]"),
        "too-many-numbers": _stated("float64", [1], "[1, 2]"),
        "no-number-of-0-d": _stated("float64", [], "[]"),
        "numbers-of-an-empty-one": _stated("float64", [0], "[1]"),
        "no-payload": '{"dtype": "float64", "shape": [1]}',
        "no-dtype": '{"shape": [1], "data": [1]}',
        "no-shape": '{"dtype": "float64", "data": [1]}',
        "dtype-unknown": _stated("bfloat16", [1], "[1]"),
        "dtype-unknown-and-empty": '{"dtype": "complex256", "shape": [0]}',
        "dtype-null": '{"dtype": null, "shape": [1], "data": [1]}',
        "shape-negative": _stated("float64", [-1], "[1]"),
        "shape-both-negative": _stated("float64", [-1, -1], "[1]"),
        "shape-fraction": '{"dtype": "float64", "shape": [1.5], "data": [1]}',
        "shape-no-list": '{"dtype": "float64", "shape": 1, "data": [1]}',
        "shape-overflow": '{"dtype": "uint8", "shape": [4294967296, 4294967296], "data_b64": ""}',
        "shape-overflow-to-four": '{"dtype": "uint8", "shape": [4, 4611686018427387905], "data_b64": "' + four + '"}',
        **{f"shape-{name}": _stated("float64", shape, "[]") for name, shape in HUGE_SHAPES.items()},
        "shape-huge-and-empty-in-base64": json.dumps({"dtype": "int64", "shape": [2**62, 0], "data_b64": ""}),
        "shape-huge-with-an-element": _stated("float64", [2**62, 2**62], "[1]"),
        "shape-too-many-axes": _stated("float64", [1] * 65, "[1]"),
        "rows": _stated("float64", [2, 1], "[[1], [2]]"),
        "data-string": _stated("float64", [1], '["1"]'),
        "data-null": _stated("float64", [1], "[null]"),
        "data-true": _stated("bool", [1], "[true]"),
        "data-nan": _stated("float64", [1], "[NaN]"),
        "data-infinity": _stated("float64", [1], "[Infinity]"),
        "data-no-list": _stated("float64", [1], "1"),
        "data-object": _stated("float64", [1], '{"0": 1}'),
        "bool-two": _stated("bool", [1], "[2]"),
        "bool-negative": _stated("bool", [1], "[-1]"),
        "int8-fraction": _stated("int8", [1], "[1.5]"),
        "int64-fraction": _stated("int64", [1], "[0.5]"),
        "int8-above": _stated("int8", [1], "[128]"),
        "int8-below": _stated("int8", [1], "[-129]"),
        "uint8-above": _stated("uint8", [1], "[256]"),
        "uint8-below": _stated("uint8", [1], "[-1]"),
        "int16-above": _stated("int16", [1], "[32768]"),
        "int16-below": _stated("int16", [1], "[-32769]"),
        "int16-fraction": _stated("int16", [1], "[0.5]"),
        "int16-base64-half-an-element": '{"dtype": "int16", "shape": [1], "data_b64": "AA=="}',
        "int32-above": _stated("int32", [1], "[2147483648]"),
        "int32-below": _stated("int32", [1], "[-2147483649]"),
        "uint32-above": _stated("uint32", [1], "[4294967296]"),
        "uint32-below": _stated("uint32", [1], "[-1]"),
        "uint32-fraction": _stated("uint32", [1], "[0.5]"),
        "uint32-base64-half-an-element": '{"dtype": "uint32", "shape": [1], "data_b64": "AAA="}',
        "int64-above": _stated("int64", [1], "[9223372036854775808]"),
        "int64-far-above": _stated("int64", [1], "[1e300]"),
        "float16-beyond": _stated("float16", [1], "[65520]"),
        "float32-beyond": _stated("float32", [1], "[3.5e38]"),
        "float64-beyond": _stated("float64", [1], "[1e400]"),
        "complex64-beyond": _stated("complex64", [1], "[1, 3.5e38]"),
        "complex128-beyond": _stated("complex128", [1], "[-1e400, 1]"),
        "complex-real-parts-alone": _stated("complex128", [2], "[1, 2]"),
        "complex-half-a-number": _stated("complex64", [2], "[1, 2, 3]"),
        "complex-too-many-numbers": _stated("complex64", [1], "[1, 2, 3, 4]"),
        "complex-pairs": _stated("complex64", [1], "[[1, 2]]"),
        "complex-string": _stated("complex64", [1], '["1+2j", 0]'),
        "complex-base64-half-an-element": '{"dtype": "complex64", "shape": [1], "data_b64": "' + four + '"}',
        "base64-too-short": '{"dtype": "float32", "shape": [2], "data_b64": "' + four + '"}',
        "base64-too-long": '{"dtype": "uint8", "shape": [3], "data_b64": "' + four + '"}',
        "base64-half-an-element": '{"dtype": "float64", "shape": [1], "data_b64": "' + four + '"}',
        "base64-other-letters": '{"dtype": "uint8", "shape": [3], "data_b64": "AA*AA"}',
        "base64-spaces": '{"dtype": "uint8", "shape": [3], "data_b64": "AA AA"}',
        "base64-line-end": '{"dtype": "uint8", "shape": [3], "data_b64": "AAAA\\n"}',
        "base64-padding-within": '{"dtype": "uint8", "shape": [2], "data_b64": "AA==AA=="}',
        "base64-of-addresses": '{"dtype": "uint8", "shape": [3], "data_b64": "A-_A"}',
        "base64-without-padding": '{"dtype": "uint8", "shape": [4], "data_b64": "AAAAAA"}',
        "base64-number": '{"dtype": "uint8", "shape": [1], "data_b64": 1}',
        "base64-bool-two": '{"dtype": "bool", "shape": [1], "data_b64": "Ag=="}',
        "two-payloads": '{"dtype": "uint8", "shape": [1], "data": [0], "data_b64": "AA=="}',
        "no-object": "[1, 2]",
        "no-json": '{"dtype": "float64", "shape": [1], "data": [1]',
    }


def _stated(dtype: str, shape: list[int], data: str) -> str:
    return f'{{"dtype": "{dtype}", "shape": {json.dumps(shape)}, "data": {data}}}'
