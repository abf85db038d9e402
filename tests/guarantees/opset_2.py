"""Requests on graphs of opset 2: complex tensors, transforms, masks and matrices; invalid, slow or degenerate."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.guarantees.jobs import Json, feed, node, request
from tests.guarantees.malformed import Case
from tests.guarantees.talk import SAFETENSORS

P, X = node("parameter"), node("input")
PAIR, REALS = feed(0, [2], [1, 2, 3, -1], "complex128"), feed(0, [4], [1, 2, 3, 4])
#: ops computed by LAPACK, and the number of results of ops with several
_MATRIX_OPS = ("eigh", "svd", "qr", "lu", "pinv", "inv", "det", "slogdet", "cholesky", "matrix_exp", "cond_number")
_RESULTS = {"eigh": 2, "svd": 3, "qr": 2, "lu": 3, "slogdet": 2}
FUNCTIONS = ("sqrt", "rsqrt", "log", "exp")


def body_of(*nodes: Json, feeds: list[Json], **more: Any) -> bytes:
    """A request on a graph of opset 2."""
    return request([], feeds, graph={"opset": 2, "nodes": list(nodes)}, **more)


# ---------------------------------------------------------------- invalid requests


def cases() -> list[Case]:
    """All invalid requests."""
    makers = (_complex_json, _complex_files, _transforms, _matrices, _masks)
    return [case for make in makers for case in make()]


def _complex_json() -> Iterator[Case]:
    nodes = (P, node("abs", 0), node("square", 1), node("sum", 2))
    plain: Json = {"dtype": "complex128", "shape": [2], "data": [1, 2, 3, -1]}
    bare: Json = {"dtype": "complex128", "shape": [2]}
    tensors: dict[str, Json] = {
        "half a pair": plain | {"data": [1, 2, 3]},
        "only the real parts": plain | {"data": [1, 2]},
        "a pair too many": plain | {"data": [1, 2, 3, 4, 5, 6]},
        "pairs as lists": plain | {"data": [[1, 2], [3, -1]]},
        "pairs as objects": plain | {"data": [{"re": 1, "im": 2}, {"re": 3, "im": -1}]},
        "Python literals": plain | {"data": ["1+2j", "3-1j"]},
        "a null part": plain | {"data": [1, None, 3, -1]},
        "a true part": plain | {"data": [1, True, 3, -1]},
        "a dtype of an unsupported size": plain | {"dtype": "complex32"},
        "a dtype in capitals": plain | {"dtype": "Complex128"},
        "a dtype of safetensors": plain | {"dtype": "C64"},
        "a shape that counts the parts": plain | {"shape": [2, 2]},
        "no numbers": plain | {"data": []},
        "beyond complex64": plain | {"dtype": "complex64", "data": [1e39, 0, 0, 0]},
        "bytes of only the real parts": bare | {"data_b64": base64.b64encode(bytes(16)).decode()},
        "bytes of half a number": bare | {"data_b64": base64.b64encode(bytes(24)).decode()},
        "bytes of another size": bare | {"dtype": "complex64", "data_b64": base64.b64encode(bytes(32)).decode()},
        "invalid base64": bare | {"data_b64": "!" * 44},
        "int16 of 40,000": {"dtype": "int16", "shape": [1], "data": [40_000]},
    }
    for name, tensor in tensors.items():
        yield Case(f"complex: {name}", body_of(*nodes, feeds=[{"node": 0, "tensor": tensor}]))
    yield Case("complex: in opset 1", request([*nodes], [PAIR]), node=0)
    yield Case("complex: a gradient of a complex scalar", body_of(P, node("sum", 0), feeds=[PAIR]))
    for op in ("relu", "floor"):
        yield Case(f"complex: {op}", body_of(P, node(op, 0), node("abs", 1), node("sum", 2), feeds=[PAIR]), node=1)
    yield Case("complex: sorted", body_of(P, node("sort", 0, axis=0), node("abs", 1), feeds=[PAIR]), node=1)
    yield Case("complex: maximum", body_of(P, node("maximum", 0, 0), node("abs", 1), feeds=[PAIR]), node=1)
    yield Case("complex: cast to real", body_of(P, node("cast", 0, dtype="float64"), node("sum", 1), feeds=[PAIR]), 1)


def _complex_files() -> Iterator[Case]:
    graph = {"opset": 2, "nodes": [P, node("abs", 0), node("sum", 1)]}
    entry = {"dtype": "F64", "shape": [2, 2], "data_offsets": [0, 32]}

    def file(complex_names: Any, entry: Json = entry, count: int = 32) -> bytes:
        metadata = {"request": json.dumps({"graph": graph}), "complex": complex_names}
        text = json.dumps({"__metadata__": metadata, "feeds.0": entry}).encode()
        return len(text).to_bytes(8, "little") + text + bytes(count)

    files = {
        "a list that is not JSON": file("[feeds.0"),
        "a name instead of a list": file('"feeds.0"'),
        "a list of numbers": file("[0]"),
        "an object instead of a list": file('{"feeds.0": true}'),
        "a list that is not a string": file(["feeds.0"]),
        "deep brackets": file("[" * 100_000),
        "the name of a missing tensor": file('["feeds.1"]'),
        "no axis of length 2": file('["feeds.0"]', entry | {"shape": [4]}),
        "an axis of length 3": file('["feeds.0"]', entry | {"shape": [1, 3], "data_offsets": [0, 24]}, 24),
        "no axis": file('["feeds.0"]', entry | {"shape": [], "data_offsets": [0, 8]}, 8),
        "of integers": file('["feeds.0"]', entry | {"dtype": "I64"}),
        "of float16": file('["feeds.0"]', entry | {"dtype": "F16", "data_offsets": [0, 8]}, 8),
        "truncated C64": file("[]", {"dtype": "C64", "shape": [2], "data_offsets": [0, 8]}, 8),
    }
    yield from (Case(f"complex file: {name}", body, kind=SAFETENSORS) for name, body in files.items())


def _transforms() -> Iterator[Case]:
    attributes: dict[str, Json] = {
        "an axis out of range": {"axes": [3]},
        "an axis twice": {"axes": [0, 0]},
        "an axis twice, from the end": {"axes": [0, -1]},
        "axes a number": {"axes": 0},
        "axes of fractions": {"axes": [0.5]},
        "more sizes than the operand has axes": {"sizes": [4, 4]},
        "too many sizes": {"axes": [0], "sizes": [4, 4]},
        "no size": {"axes": [0], "sizes": [0]},
        "a size of -1": {"axes": [0], "sizes": [-1]},
        "a size that is a string": {"axes": [0], "sizes": ["4"]},
        "a size of 10¹²": {"axes": [0], "sizes": [10**12]},
        "a size of 2⁶²": {"axes": [0], "sizes": [2**62]},
        "a size beyond 64 bits": {"axes": [0], "sizes": [2**70]},
        "an unknown norm": {"norm": "unitary"},
        "an attribute of NumPy": {"n": 4},
    }
    for op in ("fft", "ifft", "rfft", "irfft"):
        for name, attrs in attributes.items():
            yield Case(f"{op}: {name}", _transform(op, REALS, **attrs))
    yield Case("fft: of one number", _transform("fft", feed(0, [], [1])), node=1)
    yield Case("irfft: of one bin", _transform("irfft", feed(0, [1], [1])), node=1)
    yield Case("rfft: of complex numbers", _transform("rfft", PAIR), node=1)
    frames: dict[str, Json] = {
        "no stride": {},
        "a stride of 0": {"stride": [0]},
        "two strides": {"stride": [1, 1]},
        "a size of 2⁶²": {"stride": [1], "sizes": [2**62]},
        "a string": {"stride": "1"},
    }
    for name, attrs in frames.items():
        yield Case(f"stft: {name}", body_of(P, node("stft", 0, 0, **attrs), node("abs", 1), feeds=[REALS]))


def _transform(op: str, fed: Json, **attrs: Any) -> bytes:
    return body_of(P, node(op, 0, **attrs), node("abs", 1), node("sum", 2), feeds=[fed])


def _matrices() -> Iterator[Case]:
    vector, wide = feed(0, [4], [1, 2, 3, 4]), feed(0, [1, 4], [1, 2, 3, 4])
    for op in _MATRIX_OPS:
        yield Case(f"{op}: of a vector", body_of(P, node(op, 0), feeds=[vector]), node=1)
    for op in ("eigh", "matrix_exp", "det"):
        yield Case(f"{op}: of a matrix that is not square", body_of(P, node(op, 0), feeds=[wide]), node=1)
    square = feed(0, [2, 2], [1, 2, 3, 4])
    wrong: dict[str, tuple[str, Json]] = {
        "an unknown value of degenerate": ("eigh", {"degenerate": "some"}),
        "an unknown value of degenerate for svd": ("svd", {"degenerate": 0}),
        "an unknown function": ("symmetric_function", {"function": "sin"}),
        "no function": ("symmetric_function", {}),
        "a negative rcond": ("pinv", {"rcond": -1.0}),
        "a power that is a fraction": ("matrix_power", {"k": 0.5}),
    }
    for name, (op, attrs) in wrong.items():
        yield Case(f"matrices: {name}", body_of(P, node(op, 0, **attrs), node("sum", 1), feeds=[square]))
    under = [P, node("lstsq", 0, 0)]
    yield Case("lstsq: fewer rows than columns", body_of(*under, feeds=[wide]), node=1)


def _masks() -> Iterator[Case]:
    mask, x = feed(0, [4], [1, 0, 1, 0], "bool"), feed(1, [4], [1, 2, 3, 4])
    attributes: dict[str, Json] = {
        "no k": {},
        "k of -1": {"k": -1},
        "k of a half": {"k": 0.5},
        "k a string": {"k": "all"},
        "k of 2⁴⁰": {"k": 2**40},
        "k of 2⁶²": {"k": 2**62},
        "k beyond 64 bits": {"k": 2**70},
    }
    for name, attrs in attributes.items():
        taken = [node("get_output", 1, index=0), node("sum", 2)]
        yield Case(
            f"nonzero: {name}", body_of(X, node("nonzero", 0, **attrs), *taken, feeds=[mask]), path="/v1/forward"
        )
        body = body_of(
            X, P, node("compress", 1, 0, **attrs), node("get_output", 2, index=0), node("sum", 3), feeds=[mask, x]
        )
        yield Case(f"compress: {name}", body)
    reals = body_of(X, P, node("compress", 1, 1, k=2), node("get_output", 2, index=0), node("sum", 3), feeds=[mask, x])
    yield Case("compress: by a tensor that is not boolean", reals, node=2)
    for index in (4, -1, 2**40):
        body = body_of(X, P, node("index", 1, 0), node("sum", 2), feeds=[feed(0, [1], [index], "int64"), x])
        yield Case(f"index: of {index}", body, node=2)


# ---------------------------------------------------------------- degenerate values, which must be answered with 200


def degenerate() -> dict[str, bytes]:
    """Valid requests for gradients with degenerate matrices and masks, by name; each must get a 200."""
    return dict([*_degenerate_matrices(), *_degenerate_masks()])


def _degenerate_matrices() -> Iterator[tuple[str, bytes]]:
    n = 3
    fillings: dict[str, list[Any]] = {
        "zeros": [0] * n * n,
        "ones": [1] * n * n,
        "the identity": [float(i % (n + 1) == 0) for i in range(n * n)],
        "NaN": [np.nan] * n * n,
        "infinities": [np.inf] * n * n,
        "one NaN": [*([1] * (n * n - 1)), np.nan],
        "huge numbers": [1e308] * n * n,
        "tiny numbers": [5e-324] * n * n,
    }
    for name, data in fillings.items():
        for op in _MATRIX_OPS:
            yield f"{op} of {name}", _of_matrix(node(op, 0), packed([n, n], data))
        for function in FUNCTIONS:
            function_node = node("symmetric_function", 0, function=function)
            yield f"{function} of {name}", _of_matrix(function_node, packed([n, n], data))
        pairs = [part for x in data for part in (x, 0)]
        yield f"eigh of complex {name}", _of_matrix(node("eigh", 0), packed([n, n], pairs, "complex128"))
    yield "matrix_power with exponent 2⁶²", _of_matrix(node("matrix_power", 0, k=2**62), packed([2, 2], [1, 2, 3, 4]))
    for op in _MATRIX_OPS:
        yield f"{op} of an empty batch", _of_matrix(node(op, 0), feed(0, [0, n, n], []))


def packed(shape: list[int], data: list[float], dtype: str = "float64") -> Json:
    """A feed of node 0 in base64, which can represent NaN and infinities, unlike JSON numbers."""
    text = base64.b64encode(np.array(data, "float64").tobytes()).decode()
    return {"node": 0, "tensor": {"dtype": dtype, "shape": shape, "data_b64": text}}


def _of_matrix(op_node: Json, fed: Json) -> bytes:
    """A request for the gradient of the first floating-point result."""
    index = {"svd": 1, "lu": 1, "slogdet": 1}.get(op_node["op"], 0)
    read = [node("get_output", 1, index=index)] if op_node["op"] in _RESULTS else []
    last = 1 + len(read)
    return body_of(P, op_node, *read, node("abs", last), node("sum", last + 1), feeds=[fed])


def _degenerate_masks() -> Iterator[tuple[str, bytes]]:
    masks: dict[str, list[int]] = {"nothing": [0] * 4, "all": [1] * 4, "one": [0, 0, 1, 0]}
    x = feed(1, [4], [1, 2, 3, 4])
    for name, mask in masks.items():
        for k in (0, 1, 4, 9):
            taken = (node("compress", 1, 0, k=k), node("get_output", 2, index=0), node("sum", 3))
            yield f"compress by {name}, k = {k}", body_of(X, P, *taken, feeds=[feed(0, [4], mask, "bool"), x])
            places = (node("nonzero", 0, k=k), node("get_output", 2, index=0), node("reshape", 3, shape=[k]))
            summed = (node("index", 1, 4), node("sum", 5))
            yield f"nonzero of {name}, k = {k}", body_of(X, P, *places, *summed, feeds=[feed(0, [4], mask, "bool"), x])
    for size in (1, 3, 4, 64):
        for op in ("fft", "rfft", "irfft"):
            yield f"{op} of {size} points", _transform(op, REALS, axes=[0], sizes=[size])
    yield "fft of NaN and infinity", _transform("fft", packed([2], [np.nan, np.inf]))
    yield "fft of an empty batch", _transform("fft", feed(0, [0, 4], []))


# ---------------------------------------------------------------- requests that miss their deadline


def slow_decompositions(side: int) -> dict[str, bytes]:
    """Decompositions of one large matrix at node 3, by op; LAPACK cannot be interrupted."""
    spread = [X, node("broadcast_to", 0, shape=[side, side]), node("tanh", 1)]
    read = {"eigh": [node("get_output", 3, index=1)], "svd": [node("get_output", 3, index=0)], "matrix_exp": []}
    return {
        op: body_of(*spread, node(op, 2), *results, node("mean", 3 + len(results)), feeds=[feed(0, [], [0.5])])
        for op, results in read.items()
    }
