"""Fuzzing: a changed model file is imported, or refused with the importer's own exceptions."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

onnx = pytest.importorskip("onnx", reason="ONNX is not installed")

from clients.python.tests.importers.made import model  # noqa: E402 - it needs ONNX
from gradserve_client.importing import ImportLimits  # noqa: E402
from gradserve_client.onnx import import_model  # noqa: E402

LIMITS = ImportLimits(nodes=2000, steps=2000, bytes=2**24)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
WEIGHTS = {"w": np.ones((4, 5), np.float32), "b": np.arange(5, dtype=np.float32), "s": np.array([5, 3])}
IMAGE = np.ones((1, 2, 5, 5), np.float32)
#: the text of each model, the initialisers that it reads, and its input
MODELS = {
    "net": (
        """net (float[n,4] x) => (float[n,5] y) {
            a = Gemm <alpha = 0.5> (x, w, b)
            c = LayerNormalization <axis = -1> (a, b)
            d = Dropout (c)
            e = Softmax <axis = 1> (d)
            y = Clip (e)
        }""",
        "wb",
        X,
    ),
    "shapes": (
        """shapes (float[3,4] x) => (float[3,5] y, float[11,2] z) {
            m = MatMul (x, w)
            t = Reshape (m, s)
            i = Constant <value_ints = [0, 2]> ()
            g = Gather <axis = 1> (t, i)
            o = Constant <value = int64[2] {1, 0}> ()
            p = Slice (g, o, s)
            k = Shape (p)
            e = Expand (o, k)
            f = Cast <to = 1> (e)
            q = Concat <axis = 0> (p, f)
            h = Slice (q, o, k)
            v = Constant <value_ints = [2, 1]> ()
            u = Tile (h, v)
            y = Transpose <perm = [1, 0]> (t)
            z = Concat <axis = 0> (u, g)
        }""",
        "ws",
        X,
    ),
    "loops": (
        """loops (float[3,4] x) => (float[3,4] v, float[3,4] z, float[3,4] k) {
            n = Constant <value_int = 3> ()
            v, r = Loop <body = step (int64 i, bool c, float[3,4] a) => (bool still, float[3,4] d, float[3,4] e) {
                still = Identity (c)
                d = Add (a, x)
                e = Neg (d)
            }> (n, , x)
            ax = Constant <value_ints = [0]> ()
            q = ReduceSum <keepdims = 0> (x, ax)
            h, k = Scan <num_scan_inputs = 1, body = scanned (float[4] f, float[4] g) => (float[4] h, float[4] k) {
                h = Add (f, g)
                k = Mul (f, g)
            }> (q, x)
            m = ReduceMax <keepdims = 0> (x)
            p = Greater (m, m)
            z = If <then_branch = yes () => (float[3,4] u) { u = Neg (x) },
                    else_branch = no () => (float[3,4] u) { u = Abs (x) }> (p)
        }""",
        "",
        X,
    ),
    "image": (
        """image (float[1,2,5,5] x) => (float[1,2,6,6] y) {
            k = Constant <value = float[2,2,2,2] {1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0}> ()
            c = Conv <pads = [1, 1, 1, 1], strides = [2, 2], kernel_shape = [2, 2]> (x, k)
            p = MaxPool <kernel_shape = [2, 2], ceil_mode = 1> (c)
            a = AveragePool <kernel_shape = [2, 2], auto_pad = "SAME_UPPER"> (p)
            f = Constant <value_floats = [1.0, 1.0, 3.0, 3.0]> ()
            y = Resize <mode = "linear"> (a, , f)
        }""",
        "",
        IMAGE,
    ),
}
#: values for integer fields
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 7, 99, 2**16, 2**31 - 1, 2**40, 2**62, 2**63 - 1)
SEEDS = 60


def serialized(name: str) -> bytes:
    text, names, _ = MODELS[name]
    original: bytes = model(text, {each: WEIGHTS[each] for each in names}).SerializeToString()
    return original


def changed_bytes(original: bytes, draw: random.Random) -> bytes:
    """Change, remove, insert or repeat a few bytes, or cut off the end."""
    data = bytearray(original)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(data))
        match draw.randrange(5):
            case 0:
                data[place] = draw.randrange(256)
            case 1:
                data[place] ^= 1 << draw.randrange(8)
            case 2:
                del data[place : place + draw.randint(1, 8)]
            case 3:
                data[place:place] = draw.randbytes(draw.randint(1, 4))
            case 4:
                data[place:place] = data[place : place + draw.randint(1, 40)]
    return bytes(data[: draw.randrange(len(data))] if draw.random() < 0.1 else data)


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in [value] if hasattr(value, "ListFields") else value:
                yield from _messages(each)


def changed_fields(original: bytes, draw: random.Random) -> bytes:
    """Change a few fields of the file, so that it can still be parsed."""
    parsed = onnx.ModelProto.FromString(original)
    for _ in range(draw.randint(1, 3)):
        message = draw.choice([each for each in _messages(parsed) if each.ListFields()])
        field, value = draw.choice(message.ListFields())
        if draw.random() < 0.15:
            message.ClearField(field.name)
        elif hasattr(value, "append") or hasattr(value, "add"):
            _change_list(value, draw)
        elif field.message_type is None:
            _set(message, field.name, _other(value, parsed, draw))
    changed: bytes = parsed.SerializePartialToString()
    return changed


def _change_list(values: Any, draw: random.Random) -> None:
    place = draw.randrange(len(values))
    match draw.randrange(3):
        case 0:
            del values[place]
        case 1:
            values.extend([values[place]])
        case 2 if isinstance(values[place], int):
            with contextlib.suppress(ValueError):
                values[place] = draw.choice(NUMBERS)


def _other(value: Any, parsed: Any, draw: random.Random) -> Any:
    """A different value for a field."""
    if isinstance(value, int):
        return draw.choice(NUMBERS)
    if isinstance(value, float):
        return draw.choice([0.0, -1.0, float("nan"), float("inf"), 1e38])
    if isinstance(value, bytes):
        return draw.choice([b"", value[:-1], value + b"\0", b"\xff\xfe"])
    names = [node.op_type for node in parsed.graph.node] + [each for node in parsed.graph.node for each in node.output]
    return draw.choice(["", "no such name", "Identity", "Concat", "Loop", *names])


def _set(message: Any, name: str, value: Any) -> None:
    # protobuf refuses a number that the field cannot hold
    with contextlib.suppress(ValueError):
        setattr(message, name, value)


@pytest.mark.parametrize("name", MODELS)
def test_unchanged_models_are_imported(name: str) -> None:
    assert import_model(serialized(name), {"x": MODELS[name][2]}, limits=LIMITS).outputs


@pytest.mark.parametrize("change", [changed_bytes, changed_fields])
@pytest.mark.parametrize("name", MODELS)
def test_changed_file_is_imported_or_refused(name: str, change: Any) -> None:
    original, refusals = serialized(name), []
    for seed in range(SEEDS):
        broken = change(original, random.Random(f"{name} {change.__name__} {seed}"))
        try:
            import_model(broken, {"x": MODELS[name][2]}, limits=LIMITS)
        except gs.InputError as error:
            refusals.append((seed, str(error)))
    assert 0 < len(refusals) < SEEDS
    # the importer converts its own failures, and these files must cause none
    assert [each for each in refusals if "the importer failed on" in each[1]] == []


@pytest.mark.parametrize("name", MODELS)
def test_truncated_file_is_refused(name: str) -> None:
    original = serialized(name)
    for length in range(0, len(original), max(1, len(original) // 40)):
        with pytest.raises(gs.InputError):
            import_model(original[:length], {"x": MODELS[name][2]}, limits=LIMITS)
