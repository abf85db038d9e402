"""Cases of complex numbers and int16: fed, differentiated, in constants, stored, and returned in every form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from clients.conformance.bits import PARTS, Bits, Json, array_of, bits_of, file_of, to_json
from clients.conformance.cases import Case
from clients.conformance.compare import plain
from clients.conformance.making.exchange_parts import ETAG, STATS, exchange, node_tensor, number, raised
from clients.conformance.steps import graph_of, leaf, on

_FORMS: Final = ("json", "binary")
_Z: Final = bits_of(np.array([3 - 4j, -0.5j]))
_SINGLE: Final = bits_of(np.array([[1 + 2j], [-0.0 - 3j]], "complex64"))
_SHORT: Final = bits_of(np.array([-(2**15), 2**15 - 1, 0], "int16"))
#: sum of |z|², whose gradient is 2 z
_STEPS: Final = [leaf("parameter", "z"), on("abs", 0), on("square", 1), on("sum", 2)]
_CALL: Final[Json] = {"do": "gradients", "graph": {"steps": _STEPS}, "feeds": [node_tensor(0, _Z)]}
_RETURNED: Final[Json] = {
    "values": [node_tensor(3, number(25.25))],
    "gradients": [node_tensor(0, bits_of(np.array([6 - 8j, -1j])))],
    "disconnected": [],
}


def _constant(value: Bits) -> Json:
    return {"op": "constant", "attrs": {"value": value}}


# -------------------------------------------------------------------- exchanges


def exchange_cases() -> Iterator[Case]:
    """Yield the cases of the scripted server."""
    yield from _answers()
    yield from _roles()
    yield from _constants()
    yield from _resident_tensors()
    yield from _opsets()


def _seen(call: Json, form: str) -> Json:
    fields = {name: value for name, value in call.items() if name not in ("do", "graph", "form")}
    return {
        "method": "POST",
        "path": f"/v1/{call['do']}",
        "body": {"graph": plain(graph_of(call["graph"]))} | fields,
        "form": form,
    }


def _in_json(entries: list[Json], *, packed: bool) -> list[Json]:
    return [entry | {"tensor": (to_json if packed else _numbers)(entry["tensor"])} for entry in entries]


def _numbers(bits: Bits) -> Json:
    """Return a tensor with its elements, or their parts, as numbers."""
    parts = array_of(bits).reshape(-1).view(PARTS.get(bits["dtype"]) or bits["dtype"])
    return {"dtype": bits["dtype"], "shape": bits["shape"], "data": parts.tolist()}


def _written(returned: Json) -> dict[str, Json]:
    """Return a response in each form that the server may use."""
    lists = {name: entries for name, entries in returned.items() if name != "disconnected"}
    rest = {"stats": STATS, "disconnected": []}
    places = {name: [{"node": entry["node"]} for entry in entries] for name, entries in lists.items()}
    tensors = {f"{name}.{entry['node']}": entry["tensor"] for name, entries in lists.items() for entry in entries}
    return {
        "numbers": {"json": {name: _in_json(entries, packed=False) for name, entries in lists.items()} | rest},
        "base64": {"json": {name: _in_json(entries, packed=True) for name, entries in lists.items()} | rest},
        "file": {"file": {"response": places | rest, "tensors": tensors}},
    }


def _answers() -> Iterator[Case]:
    """Yield a gradient with respect to a complex leaf in all forms, and files with invalid complex tensors."""
    for form in _FORMS:
        for name, answer in _written(_RETURNED).items():
            call = _CALL | {"form": form}
            result = {"returned": _RETURNED}
            yield exchange(f"complex-{form}-answered-as-{name}", [answer], [_seen(call, form)], [result], calls=[call])
    short = {"values": [node_tensor(0, _SHORT)]}
    call = {"do": "forward", "graph": {"steps": [leaf("input", "n", dtype="int16")]}, "feeds": [node_tensor(0, _SHORT)]}
    for form in _FORMS:
        for name, answer in _written(short).items():
            stated = call | {"form": form}
            yield exchange(
                f"int16-{form}-answered-as-{name}",
                [answer],
                [_seen(stated, form)],
                [{"returned": short}],
                calls=[stated],
            )
    entry: Json = {"dtype": "F64", "shape": [1, 2], "data_offsets": [0, 16]}
    wrong: dict[str, tuple[Json, str]] = {
        "without-an-axis-of-two": (entry | {"shape": [2, 1]}, '["values.3"]'),
        "of-whole-numbers": (entry | {"dtype": "I64"}, '["values.3"]'),
        "that-is-not-there": (entry, '["values.4"]'),
        "in-no-list": (entry, '"values.3"'),
    }
    for name, (stated, names) in wrong.items():
        metadata = {"response": '{"values": [{"node": 3}], "gradients": [], "disconnected": []}', "complex": names}
        answer = {"hex": file_of({"__metadata__": metadata, "values.3": stated}, bytes(16)).hex()}
        answer |= {"headers": {"Content-Type": "application/vnd.safetensors"}}
        seen = _seen(_CALL, "json")
        yield exchange(f"complex-{name}", [answer], [seen], [raised("transport")], calls=[_CALL | {"form": "json"}])


def _roles() -> Iterator[Case]:
    """Yield complex cotangents, tangents and vectors."""
    steps = [leaf("parameter", "z"), on("conj", 0)]
    graph, feeds = {"steps": steps}, [node_tensor(0, _Z)]
    value, gradient = {"values": [node_tensor(1, _Z)]}, {"gradients": [node_tensor(0, _Z)]}
    calls: dict[str, tuple[Json, Json]] = {
        "cotangent": ({"do": "gradients", "of": 1, "cotangent": _Z}, value | gradient),
        "cotangents": ({"do": "vjp", "cotangents": [node_tensor(1, _Z)]}, value | gradient),
        "tangents": ({"do": "jvp", "tangents": [node_tensor(0, _Z)]}, value | {"tangents": [node_tensor(1, _Z)]}),
        "vectors": (
            {"do": "hvp", "of": 1, "vectors": [node_tensor(0, _Z)]},
            value | gradient | {"hvp": [node_tensor(0, _Z)]},
        ),
    }
    for name, (fields, returned) in calls.items():
        for form in _FORMS:
            call = {"graph": graph, "feeds": feeds, "form": form} | fields
            answer, result = _written(returned)["file"], {"returned": returned}
            yield exchange(f"complex-{name}-{form}", [answer], [_seen(call, form)], [result], calls=[call])


def _constants() -> Iterator[Case]:
    """Yield constants in graphs and in functions, whose names in files have more parts."""
    function = {"steps": [leaf("input"), _constant(_SINGLE), on("mul", 0, 1)], "outputs": [2]}
    called = {"functions": [function], "steps": [leaf("input"), on("call", 0, body={"function": 0})]}
    graphs: dict[str, Json] = {
        "complex-constant": {"steps": [_constant(_SINGLE), _constant(_Z), on("sum", 1)]},
        "int16-constant": {"steps": [_constant(_SHORT), on("add", 0, 0)]},
        "complex-constant-of-a-function": called,
    }
    for name, graph in graphs.items():
        for form in _FORMS:
            call: Json = {"do": "forward", "graph": graph, "form": form}
            answer = _written({"values": []})["base64"]
            yield exchange(
                f"{name}-{form}", [answer], [_seen(call, form)], [{"returned": {"values": []}}], calls=[call]
            )


def _resident_tensors() -> Iterator[Case]:
    """Yield resident tensors sent and read one at a time, whose files also list them as complex."""
    for name, tensor in (("complex128", _Z), ("complex64", _SINGLE), ("int16", _SHORT)):
        size = len(tensor["hex"]) // 2
        summary = {"tensor_id": "z", "etag": ETAG, "bytes": size, "durable": True}
        summary |= {"dtype": tensor["dtype"], "shape": tensor["shape"]}
        seen: Json = {"method": "PUT", "path": "/v1/tensors/z", "body": tensor}
        for form in _FORMS:
            calls = [{"do": "put", "name": "z", "tensor": tensor, "form": form}]
            answers = [{"status": 201, "json": summary}]
            yield exchange(f"put-{name}-{form}", answers, [seen | {"form": form}], [{"returned": summary}], calls=calls)
        written = {"tensor_id": "z", "etag": ETAG}
        forms: dict[str, Json] = {
            "numbers": {"json": written | {"tensor": _numbers(tensor)}},
            "base64": {"json": written | {"tensor": to_json(tensor)}},
            "file": {"file": {"response": {}, "tensors": {"z": tensor}}, "headers": {"ETag": f'"{ETAG}"'}},
        }
        for kind, answer in forms.items():
            returned = {"returned": written | {"tensor": tensor}}
            saw = [{"method": "GET", "path": "/v1/tensors/z"}]
            yield exchange(f"get-{name}-as-{kind}", [answer], saw, [returned], calls=[{"do": "get", "name": "z"}])


def _opsets() -> Iterator[Case]:
    """Yield graphs for which the client states opset 2, since they have these dtypes, ops or attributes."""
    graphs: dict[str, list[Json]] = {
        "int16-leaf": [leaf("input", dtype="int16"), on("add", 0, 0)],
        "int16-cast": [leaf("input"), on("cast", 0, dtype="int16")],
        "complex-leaf": [leaf("parameter", dtype="complex64"), on("add", 0, 0)],
        "complex-cast": [leaf("input"), on("cast", 0, dtype="complex128")],
        "transform": [leaf("input"), on("rfft", 0)],
        "an-attribute": [leaf("input"), on("cumsum", 0, axis=0, reverse=True)],
    }
    for name, steps in graphs.items():
        call = {"do": "forward", "graph": {"steps": steps}}
        answer = _written({"values": []})["base64"]
        seen = {"method": "POST", "path": "/v1/forward", "body": {"graph": {"opset": 2, "nodes": steps}}}
        yield exchange(f"opset-of-{name}", [answer], [seen], [{"returned": {"values": []}}], calls=[call])


# -------------------------------------------------------------------- a real server


def live_cases() -> Iterator[Case]:
    """Yield calls with complex numbers and int16 for the real server."""
    rng = np.random.default_rng(22)
    double = bits_of(rng.uniform(-2, 2, (2, 8)).view("complex128"))
    single = bits_of(rng.uniform(-2, 2, (3, 4)).astype("float32").view("complex64"))
    real = bits_of(rng.uniform(-2, 2, (2, 8)))
    for form in _FORMS:
        registered: Json = {"registered": True} if form == "binary" else {}
        for name, z in (("complex128", double), ("complex64", single)):
            yield from _differentiated(f"{name}-{form}", z, form, registered)
        yield _live(f"transforms-{form}", _transforms(real, form, registered))
        product = [leaf("input", "z"), _constant(_Z), on("mul", 0, 1), on("sum", 2)]
        yield _live(f"complex-constant-{form}", _forward(product, _Z, form, registered))
        shorts = [leaf("input", "n", dtype="int16"), _constant(_SHORT), on("add", 0, 1), on("cast", 2, dtype="float32")]
        yield _live(f"int16-constant-{form}", _forward(shorts, _SHORT, form, registered) | {"outputs": [2, 3]})
        for name, tensor in (("complex128", _Z), ("complex64", _SINGLE), ("int16", _SHORT)):
            yield _live(f"{name}-put-and-get-{form}", *_resident(tensor, form))
    feeds = [node_tensor(0, _Z)]
    yield _live("refused-complex-of-opset-1", {"do": "forward", "graph": {"steps": _STEPS, "opset": 1}, "feeds": feeds})
    yield _live("refused-complex-order", {"do": "forward", "graph": {"steps": [*_STEPS, on("max", 0)]}, "feeds": feeds})


def _live(name: str, *calls: Json) -> Case:
    return {"id": f"live-{name}", "kind": "live", "calls": list(calls)}


def _forward(steps: list[Json], fed: Bits, form: str, registered: Json) -> Json:
    return {
        "do": "forward",
        "graph": {"steps": steps, "opset": 2} | registered,
        "form": form,
        "feeds": [node_tensor(0, fed)],
    }


def _differentiated(name: str, z: Bits, form: str, registered: Json) -> Iterator[Case]:
    """Yield all calls that take tensors of a complex leaf's type."""
    steps = [leaf("parameter", "z", dtype=z["dtype"]), on("exp", 0), on("abs", 1), on("square", 2), on("sum", 3)]
    fed: Json = {"graph": {"steps": steps} | registered, "form": form, "feeds": [node_tensor(0, z)]}
    rotated = bits_of(array_of(z) * 1j)
    calls: dict[str, Json] = {
        "gradients": {"do": "gradients", "outputs": [4, 1]},
        "cotangent": {"do": "gradients", "of": 1, "cotangent": rotated},
        "vjp": {"do": "vjp", "outputs": [1], "cotangents": [node_tensor(1, rotated)]},
        "jvp": {"do": "jvp", "outputs": [1, 4], "tangents": [node_tensor(0, rotated)]},
        "hvp": {"do": "hvp", "vectors": [node_tensor(0, rotated)]},
    }
    for call, fields in calls.items():
        yield _live(f"{name}-{call}", fed | fields)


def _transforms(x: Bits, form: str, registered: Json) -> Json:
    """Return a call with transforms, their inverses, and the parts of the transformed values."""
    steps: list[Json] = [leaf("parameter", "x"), on("rfft", 0), on("irfft", 1, sizes=[8]), on("fft", 0), on("ifft", 3)]
    steps += [on("real", 3), on("imag", 3), on("angle", 3), on("make_complex", 5, 6), on("conj", 8)]
    steps += [on("fft", 0, axes=[0], norm="ortho"), on("abs", 1), on("sum", 11)]
    fed: Json = {"graph": {"steps": steps} | registered, "form": form, "feeds": [node_tensor(0, x)]}
    return {"do": "gradients", "of": 12, "outputs": [1, 2, 3, 4, 7, 8, 9, 10]} | fed


def _resident(tensor: Bits, form: str) -> list[Json]:
    """Return calls that put, read and feed a tensor, and store a value."""
    steps: list[Any] = [leaf("input", "x", dtype=tensor["dtype"]), on("add", 0, 0)]
    call = {"do": "forward", "graph": {"steps": steps}, "feeds": [{"node": 0, "tensor_id": "x"}], "form": form}
    return [
        {"do": "put", "name": "x", "tensor": tensor, "form": form},
        {"do": "get", "name": "x", "form": form},
        call | {"store": [{"node": 1, "tensor_id": "y"}]},
        {"do": "get", "name": "y", "form": form},
    ]
