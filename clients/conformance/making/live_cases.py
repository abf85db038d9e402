"""Cases for a real server. Their expected results are that server's responses to plain HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from clients.conformance.bits import SAFETENSORS, Bits, Json, bits_of
from clients.conformance.cases import Case
from clients.conformance.steps import leaf, on

_RNG_SEED: Final = 20
_FORMS: Final = ("json", "binary")
_OF_OPSET_2: Final = frozenset({"int16", "uint32", "complex64", "complex128"})


def live_cases() -> Iterator[Case]:
    """Yield all cases."""
    rng = np.random.default_rng(_RNG_SEED)
    for name, steps, feeds in _graphs(rng):
        yield from _calls_on(name, steps, feeds, rng)
    yield from _dtypes()
    yield from _budgets()
    yield from _precisions(rng)
    yield from _random()
    yield from _state()
    yield from _refusals()


def _live(name: str, *calls: Json, **more: Any) -> Case:
    return {"id": f"live-{name}", "kind": "live"} | more | {"calls": list(calls)}


def _graphs(rng: np.random.Generator) -> Iterator[tuple[str, list[Json], list[Bits]]]:
    """Yield graphs that end in a scalar, with values for their leaves, node 0 (an input) and 1 (a parameter)."""
    x, w = leaf("input", "x"), leaf("parameter", "w")
    mul = [x, w, on("mul", 0, 1), on("tanh", 2), on("sum", 3)]
    yield "products", mul, [_drawn(rng, 3), _drawn(rng, 3)]
    layer = [x, w, on("matmul", 0, 1), on("gelu", 2), on("softmax", 3), on("log", 4), on("mean", 5)]
    yield "layer", layer, [_drawn(rng, 4, 3), _drawn(rng, 3, 5)]
    single = [x, w, on("matmul", 0, 1), on("silu", 2), on("logsumexp", 3, axes=[1]), on("mean", 4)]
    yield "layer-of-float32", single, [_drawn(rng, 4, 3, dtype="float32"), _drawn(rng, 3, 5, dtype="float32")]


def _drawn(rng: np.random.Generator, *shape: int, dtype: str = "float64") -> Bits:
    return bits_of(rng.uniform(-2, 2, shape).astype(dtype))


def _calls_on(name: str, steps: list[Json], feeds: Sequence[Bits], rng: np.random.Generator) -> Iterator[Case]:
    """Yield all eleven calls, each in both forms; those in binary are on a registered graph."""
    last = len(steps) - 1
    shape, dtype = feeds[1]["shape"], feeds[1]["dtype"]
    direction = _drawn(rng, *shape, dtype=dtype)
    fed = {"feeds": [{"node": node, "tensor": bits} for node, bits in enumerate(feeds)]}
    types = {"types": [{"node": n, "dtype": bits["dtype"], "shape": bits["shape"]} for n, bits in enumerate(feeds)]}
    many = bits_of(rng.uniform(-2, 2, (3, *shape)).astype(dtype))
    mapped = {"feeds": [fed["feeds"][0], {"node": 1, "tensor": many}], "mapped": [1]}
    one = bits_of(np.array(1.5, dtype))
    calls: dict[str, Json] = {
        "forward": fed | {"outputs": [2, last]},
        "gradients": fed | {"wrt": [0, 1], "outputs": [last, 2]},
        "vjp": fed | {"outputs": [last], "cotangents": [{"node": last, "tensor": one}]},
        "jvp": fed | {"tangents": [{"node": 1, "tensor": direction}]},
        "jacobian": fed | {"outputs": [2, 3], "wrt": [1, 0]},
        "hvp": fed | {"wrt": [1, 0], "vectors": [{"node": 1, "tensor": direction}, fed["feeds"][0]]},
        "hessian": fed | {"wrt": [0, 1]},
        "batch": mapped,
        "plan": types | {"call": "hessian"},
        "check": fed | {"directions": 2, "tolerance": 1e-5},
        "differentiate": types | {"wrt": [1]},
    }
    for call, fields in calls.items():
        for form in _FORMS:
            graph: Json = {"steps": steps} | ({"registered": True} if form == "binary" else {})
            yield _live(f"{name}-{call}-{form}", {"do": call, "graph": graph, "form": form} | fields)


def _dtypes() -> Iterator[Case]:
    """Yield tensors of every dtype, in every form, through a graph that does not change them."""
    steps = [leaf("input", "x"), on("reshape", 0, shape=[-1, 2]), on("cat", 1, 1, axis=0)]
    for dtype in SAFETENSORS:
        opset = {"opset": 2} if dtype in _OF_OPSET_2 else {}
        kind = np.dtype(dtype).kind
        values = np.array([np.nan, -0.0, np.inf, 1.5] if kind in "fc" else [0, 1, 1, 0], dtype)
        if kind in "iu":
            values[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        elif kind == "c":
            values.imag = [-0.0, 1, np.nan, -np.inf]
        for form in _FORMS:
            feeds = [{"node": 0, "tensor": bits_of(values)}]
            graph = {"steps": steps} | opset
            call = {"do": "forward", "graph": graph, "feeds": feeds, "outputs": [2, 0], "form": form}
            yield _live(f"{dtype}-{form}", call)
    empty = [{"node": 0, "tensor": bits_of(np.zeros((0, 2), "float32"))}]
    yield _live("empty", {"do": "forward", "graph": {"steps": steps}, "feeds": empty})
    large = [{"node": 0, "tensor": bits_of(np.arange(5000, dtype="float32"))}]
    yield _live("large", {"do": "forward", "graph": {"steps": steps}, "feeds": large})


def _budgets() -> Iterator[Case]:
    """Yield a chain of sines whose gradient cannot store all values within the budget, and an impossible budget."""
    steps = [leaf("parameter", "x"), *(on("sin", node) for node in range(16)), on("sum", 16)]
    numbers = bits_of(np.linspace(0.1, 1.6, 16))
    fed = {"feeds": [{"node": 0, "tensor": numbers}]}
    calls: dict[str, Json] = {
        "forward": fed | {"memory_budget": 1024},
        "gradients": fed | {"memory_budget": 1600},
        "check": fed | {"memory_budget": 1 << 20},
        "plan": {"types": [{"node": 0, "dtype": "float64", "shape": [16]}], "memory_budget": 1600},
        "refused": fed | {"memory_budget": 64},
    }
    for name, fields in calls.items():
        for form in _FORMS:
            graph: Json = {"steps": steps} | ({"registered": True} if form == "binary" else {})
            call = {"do": "gradients" if name == "refused" else name, "graph": graph, "form": form}
            yield _live(f"memory-budget-{name}-{form}", call | fields)


def _precisions(rng: np.random.Generator) -> Iterator[Case]:
    """Yield a float32 product in each precision. The server that runs it has no GPU."""
    steps = [leaf("input", "x"), leaf("parameter", "w"), on("matmul", 0, 1), on("sum", 2)]
    fed = [{"node": node, "tensor": _drawn(rng, 3, 3, dtype="float32")} for node in (0, 1)]
    for k, precision in enumerate(("float32", "tf32x3", "tf32", "bfloat16")):
        call = {"do": "gradients", "graph": {"steps": steps}, "feeds": fed, "form": _FORMS[k % 2]}
        yield _live(f"precision-{precision}", call | {"precision": precision})


def _random() -> Iterator[Case]:
    """Yield random numbers and uint32, for which a client states opset 2."""
    number, float32 = {"shape": [2, 3], "dtype": "float64"}, {"shape": [5], "dtype": "float32"}
    steps = [
        leaf("input", "seed", dtype="int64", zero_d=True),
        on("random_key", 0),
        on("random_split", 1, k=2),
        on("random_fold_in", 1, 0),
        on("random_bits", 3, shape=[3, 2]),
        on("random_uniform", 1, **number),
        on("random_normal", 3, **float32),
        on("random_gumbel", 1, **number),
        on("random_exponential", 3, **number),
        on("random_permutation", 1, k=7),
        on("random_bernoulli", 3, 5),
        on("random_categorical", 1, 7),
    ]
    outputs = [*range(1, len(steps))]
    seed: Json = {"feeds": [{"node": 0, "tensor": bits_of(np.array(-(2**40) - 20, "int64"))}]}
    normal = [leaf("parameter", "scale"), leaf("input", "key", dtype="uint32", shape=[2])]
    normal += [on("random_normal", 1, shape=[4], dtype="float64"), on("mul", 0, 2), on("sum", 3)]
    key = bits_of(np.array([0, 2**32 - 1], "uint32"))
    fed: Json = {"feeds": [{"node": 0, "tensor": bits_of(np.array(1.5))}, {"node": 1, "tensor": key}]}
    constant: Json = {"op": "constant", "attrs": {"value": key}}
    for form in _FORMS:
        more: Json = {"registered": True} if form == "binary" else {}
        graph: Json = {"steps": steps} | more
        yield _live(f"random-{form}", {"do": "forward", "graph": graph, "form": form, "outputs": outputs} | seed)
        scaled: Json = {"steps": normal} | more
        yield _live(f"random-gradients-{form}", {"do": "gradients", "graph": scaled, "form": form} | fed)
        doubled = {"steps": [constant, on("add", 0, 0)]} | more
        yield _live(f"words-constant-{form}", {"do": "forward", "graph": doubled, "form": form, "outputs": [0, 1]})
        cast = {"steps": [leaf("input", "x"), on("cast", 0, dtype="uint32")]} | more
        numbers = {"feeds": [{"node": 0, "tensor": bits_of(np.array([0, 1, 2**32 - 1]))}]}
        yield _live(f"words-cast-{form}", {"do": "forward", "graph": cast, "form": form} | numbers)
    for form in _FORMS:
        put: Json = {"do": "put", "name": "key", "tensor": key, "form": form}
        resident = {"feeds": [fed["feeds"][0], {"node": 1, "tensor_id": "key"}]}
        on_resident: Json = {"do": "gradients", "graph": {"steps": normal}} | resident
        yield _live(f"words-put-and-get-{form}", put, {"do": "get", "name": "key", "form": form}, on_resident)
    types = [{"node": 0, "dtype": "float64", "shape": []}, {"node": 1, "dtype": "uint32", "shape": [2]}]
    yield _live("random-differentiate", {"do": "differentiate", "graph": {"steps": normal}, "types": types})
    yield _live("random-plan", {"do": "plan", "graph": {"steps": normal}, "types": types, "call": "gradients"})


def _sums(form: str) -> Case:
    """Return sums over rows of a resident tensor, whole and in blocks, a stored gradient, and the plan."""
    rng = np.random.default_rng(7)
    steps = [leaf("parameter", "w"), leaf("input", "x"), on("mul", 0, 1), on("sum", 2), on("square", 3)]
    graph: Json = {"steps": steps} | ({"registered": True} if form == "binary" else {})
    put: Json = {"do": "put", "name": "x", "tensor": _drawn(rng, 9, 2), "form": form}
    w, rows = {"node": 0, "tensor": _drawn(rng, 2)}, {"node": 1, "tensor_id": "x", "rows": [1, 8]}
    summed: Json = {"do": "batch", "graph": graph, "form": form, "feeds": [w, rows], "mapped": [1], "reduce": "sum"}
    stored = {"store": [{"node": 0, "tensor_id": "g", "gradient": True}], "block": 2, "reduce": "mean"}
    types = [{"node": 0, "dtype": "float64", "shape": [2]}, {"node": 1, "dtype": "float64", "shape": [7, 2]}]
    planned: Json = {"do": "plan", "graph": graph, "types": types, "call": "batch", "mapped": [1], "reduce": "sum"}
    calls = [put, summed, summed | {"block": 4}, summed | stored, {"do": "get", "name": "g", "form": form}]
    return _live(f"sums-{form}", *calls, planned | {"block": 2}, summed | {"reduce": "none"})


def _state() -> Iterator[Case]:
    """Yield registered graphs and resident tensors, which are deleted when the case ends."""
    steps = [leaf("parameter", "w"), on("square", 0), on("sum", 1), on("grad", 2, 0), on("sub", 0, 3)]
    tensor = bits_of(np.array([1.0, -2.0, 0.5]))
    put: Json = {"do": "put", "name": "w", "tensor": tensor}
    get: Json = {"do": "get", "name": "w"}
    step: Json = {
        "do": "gradients",
        "graph": {"steps": steps, "registered": True},
        "feeds": [{"node": 0, "tensor_id": "w"}],
        "of": 2,
        "store": [{"node": 4, "tensor_id": "w"}],
    }
    yield _live("descent", put, step, get, step, get, {"do": "delete", "name": "w"}, get)
    fed: Json = {"feeds": [{"node": 0, "tensor": tensor}]}
    three = [step | fed | {"store": [{"node": node, "tensor_id": f"n.{node}"}]} for node in (0, 3, 4)]
    yield _live("listing", *three, {"do": "list_tensors", "limit": 2}, {"do": "list_graphs", "limit": 1})
    absent = put | {"if_none_match": "*"}
    yield _live("conditions", absent, absent, put | {"if_match": "*"}, put | {"if_match": "0" * 16}, get)
    yield _live("delete-on-condition", put, {"do": "delete", "name": "w", "if_match": "0" * 16}, get)
    in_memory = step | fed | {"store": [{"node": 4, "tensor_id": "w", "if_match": "", "durable": False}]}
    yield _live("store-on-condition", in_memory, in_memory, get)
    for form in _FORMS:
        yield _live(f"put-and-get-{form}", put | {"form": form}, get | {"form": form})
        yield _sums(form)
    register = {"do": "register", "steps": steps, "description": "descent by one half"}
    yield _live("registration", register, register, {"do": "list_graphs"})
    yield _live("catalogue", {"do": "ops"})
    yield _live("receipt", step | fed | {"store": []}, keep=["stats"])


def _refusals() -> Iterator[Case]:
    """Yield calls that a real server refuses, naming code, node, operand and pointer."""
    x = leaf("input", "x")
    feeds = [{"node": 0, "tensor": bits_of(np.array([1.0, 2.0]))}]
    invalid: dict[str, tuple[list[Json], Json]] = {
        "unknown-op": ([x, on("an_op_that_nobody_has", 0)], {}),
        "two-faults": ([x, on("unheard_of", 0), on("also_unheard_of", 1)], {}),
        "bad-attribute": ([x, on("sum", 0, axes=[5])], {}),
        "missing-feed": ([x, leaf("input", "y"), on("add", 0, 1)], {}),
        "unexpected-feed": ([x, on("tanh", 0)], {"feeds": [{"node": 1, "tensor": feeds[0]["tensor"]}]}),
        "shape-mismatch": ([x, {"op": "constant", "attrs": {"value": bits_of(np.ones(3))}}, on("add", 0, 1)], {}),
        "missing-tensor": ([x, on("tanh", 0)], {"feeds": [{"node": 0, "tensor_id": "nobody"}]}),
        "twice": ([x, on("tanh", 0)], {"outputs": [1, 1]}),
    }
    for name, (steps, fields) in invalid.items():
        for registered in (False, True):
            graph: Json = {"steps": steps} | ({"registered": True} if registered else {})
            call = {"do": "forward", "graph": graph, "feeds": feeds} | fields
            yield _live(f"refused-{name}{'-registered' if registered else ''}", call)
    yield from _refusals_of_opsets(x)
    vector = {"do": "gradients", "graph": {"steps": [leaf("parameter", "w"), on("tanh", 0)]}, "feeds": feeds}
    yield _live("refused-non-scalar", vector)


def _refusals_of_opsets(x: Json) -> Iterator[Case]:
    """Yield graphs that need opset 2 but state opset 1, or are fed uint32 without stating any."""
    key = bits_of(np.array([1, 2], "uint32"))
    feeds = [{"node": 0, "tensor": key}]
    invalid: dict[str, list[Json]] = {
        "op-since-opset-2": [x, on("random_bits", 0, shape=[2])],
        "constant-since-opset-2": [x, {"op": "constant", "attrs": {"value": key}}],
        "attribute-since-opset-2": [x, on("cast", 0, dtype="uint32")],
        "feed-since-opset-2": [x, on("reshape", 0, shape=[2])],
    }
    for name, steps in invalid.items():
        yield _live(f"refused-{name}", {"do": "forward", "graph": {"steps": steps, "opset": 1}, "feeds": feeds})
    yield _live("refused-feed-since-opset-2-unsaid", {"do": "forward", "graph": {"steps": [x]}, "feeds": feeds})
    yield _live("refused-opset-3", {"do": "forward", "graph": {"steps": [x], "opset": 3}, "feeds": feeds})
