"""The calls of recorded functions, as generators that yield client calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.answers import Certificate, Forecast
from gradserve_client.errors import InputError
from gradserve_client.fields import Reduction
from gradserve_client.graph import Graph, Node
from gradserve_client.recording.arguments import Library, Selector
from gradserve_client.recording.call import Feeds, FunctionCall, Source
from gradserve_client.recording.recorded import Recorded, Steps
from gradserve_client.recording.trees import match_leaves
from gradserve_client.tensors import as_array


def value(source: Source, /, *args: Any, **kwargs: Any) -> Steps[Any]:
    """Return the function's result, with NumPy arrays."""
    call = yield from source.bind(args, kwargs)
    recorded, answer = yield from call.run(
        lambda r: r.request("forward", feeds=call.feeds(r), outputs=r.requested_nodes)
    )
    return recorded.values(answer.values)


def grad(source: Source, /, *args: Any, wrt: Selector = 0, **kwargs: Any) -> Steps[Any]:
    """Return the gradient of a function that returns one float.

    It has the structure of the `wrt` argument, and each array the shape and dtype of the argument's. Raises InputError
    if the result is not one float, or a `wrt` argument has arrays of integers or bools.
    """
    return (yield from _value_and_grad(source, "grad", args, kwargs, wrt))[1]


def value_and_grad(source: Source, /, *args: Any, wrt: Selector = 0, **kwargs: Any) -> Steps[tuple[Any, Any]]:
    """Return a tuple of the value and the gradient of a function that returns one float, as `grad` does."""
    return (yield from _value_and_grad(source, "value_and_grad", args, kwargs, wrt))


def _value_and_grad(
    source: Source, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], wrt: Selector
) -> Steps[tuple[Any, Any]]:
    call = yield from source.bind(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.request(
            "gradients", feeds=call.feeds(r), of=r.scalar_output(name), wrt=call.wrt(r), outputs=r.requested_nodes
        )
    )
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def vjp(source: Source, /, *args: Any, cotangents: Any, wrt: Selector = 0, **kwargs: Any) -> Steps[tuple[Any, Any]]:
    """Return a tuple of the value and the vector-Jacobian product.

    `cotangents` has the structure of the function's result, with arrays of the same shapes; the product has the
    structure of the `wrt` argument. Raises InputError unless all results are floats or complex numbers.
    """
    call = yield from source.bind(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.request(
            "vjp",
            feeds=call.feeds(r),
            cotangents=_cotangents(r, cotangents),
            wrt=call.wrt(r),
            outputs=r.requested_nodes,
        )
    )
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def jvp(source: Source, /, *args: Any, tangents: Any, wrt: Selector = 0, **kwargs: Any) -> Steps[tuple[Any, Any]]:
    """Return a tuple of the value and the Jacobian-vector product.

    `tangents` has the structure of the `wrt` argument, with arrays of the same shapes; the product has the structure of
    the function's result. Raises InputError unless all results are floats or complex numbers.
    """
    call = yield from source.bind(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.request(
            "jvp",
            feeds=call.feeds(r),
            tangents=call.tangents_by_leaf(r, tangents, "tangents"),
            outputs=_require_floats(r, "jvp"),
        )
    )
    return recorded.values(answer.values), recorded.values(answer.tangents)


def hvp(source: Source, /, *args: Any, vectors: Any, wrt: Selector = 0, **kwargs: Any) -> Steps[Any]:
    """Return the Hessian-vector product of a function that returns one float.

    `vectors` and the product have the structure of the `wrt` argument, with arrays of the same shapes.
    """
    call = yield from source.bind(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.request(
            "hvp",
            feeds=call.feeds(r),
            of=r.scalar_output("hvp"),
            wrt=call.wrt(r),
            vectors=call.tangents_by_leaf(r, vectors, "vectors"),
            outputs=r.requested_nodes,
        )
    )
    return call.by_argument(recorded, answer.hvp)


def hessian(source: Source, /, *args: Any, wrt: Selector = 0, **kwargs: Any) -> Steps[Any]:
    """Return the Hessian of a function that returns one float, a block for each pair of arrays of `wrt`.

    It has the structure of the `wrt` argument twice: for each array, the structure with a block for each array. A block
    has the shape of the row's array followed by the shape of the column's.
    """
    call = yield from source.bind(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.request(
            "hessian", feeds=call.feeds(r), of=r.scalar_output("hessian"), wrt=call.wrt(r), outputs=r.requested_nodes
        )
    )
    nodes = call.wrt(recorded)
    rows = [call.build(answer.hessian[row, column] for column in nodes) for row in nodes]
    return call.build(rows)


def jacobian(source: Source, /, *args: Any, wrt: Selector = 0, **kwargs: Any) -> Steps[Any]:
    """Return the Jacobian: for each array of the function's result, a block for each array of `wrt`.

    A block has the shape of the result followed by the shape of the argument. Raises InputError unless all results are
    floats or complex numbers.
    """
    call = yield from source.bind(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.request("jacobian", feeds=call.feeds(r), wrt=call.wrt(r), outputs=_require_floats(r, "jacobian"))
    )
    nodes = call.wrt(recorded)
    return recorded.build(lambda out: call.build(answer.jacobian[out.node, node] for node in nodes))


def batch(
    source: Source,
    /,
    *args: Any,
    mapped: Selector | None = None,
    wrt: Selector | None = None,
    reduce: Reduction = "none",
    block: int | None = None,
    **kwargs: Any,
) -> Steps[Any]:
    """Return the values of many examples, or with `wrt` a tuple of values and gradients.

    The function is written for one example. The arguments in `mapped`, by default all, have a leading axis N of
    examples. Results have this axis too, unless `reduce` is "sum" or "mean"; then `block` examples are combined at a
    time. Gradients are those of the one float that the function returns, or Jacobians if it returns one array of
    floats.
    """
    call = yield from source.bind(args, kwargs, () if wrt is None else wrt, mapped)
    if reduce != "none":
        return (yield from _reduce(call, wrt, reduce, block))
    if wrt is None:
        recorded, answer = yield from call.run(
            lambda r: r.request("batch", feeds=call.feeds(r), mapped=call.mapped(r), outputs=r.requested_nodes)
        )
        return recorded.values(answer.values)
    recorded, answer = yield from call.run(
        lambda r: r.request_each(
            "batch", feeds=call.feeds(r), mapped=call.mapped(r), wrt=call.wrt(r), outputs=r.requested_nodes
        )
    )
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def _reduce(call: FunctionCall, wrt: Selector | None, reduce: Reduction, block: int | None) -> Steps[Any]:
    """Return the sum or mean over the examples, after checking the guards: a sum would not show where they fail."""
    recorded = yield from call.validated()
    options: dict[str, Any] = {"reduce": reduce, "block": block}
    options["outputs"] = [*dict.fromkeys(output.node for output in recorded.outputs)]
    options |= {"feeds": call.feeds(recorded), "mapped": call.mapped(recorded)}
    if wrt is None:
        answer = yield recorded.request("batch", **options)
        return recorded.values(answer.values)
    answer = yield recorded.request_each("batch", wrt=call.wrt(recorded), **options)
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def check(
    source: Source,
    /,
    *args: Any,
    wrt: Selector = 0,
    directions: int | None = None,
    tolerance: float | None = None,
    **kwargs: Any,
) -> Steps[Certificate]:
    """Compare the gradient with central differences on the server.

    `directions` is the number of directions per array, 1 to 64 (default 4); `tolerance` is the largest relative error
    that passes (default 10⁻⁶).
    """
    call = yield from source.bind(args, kwargs, wrt)
    recorded = yield from call.validated()
    options = {
        "of": recorded.scalar_output("check"),
        "wrt": call.wrt(recorded),
        "directions": directions,
        "tolerance": tolerance,
    }
    certificate: Certificate = yield recorded.request("check", feeds=call.feeds(recorded), **options)
    return certificate


def plan(
    source: Source,
    /,
    *args: Any,
    call: str = "gradients",
    wrt: Selector = 0,
    mapped: Selector | None = None,
    reduce: Reduction | None = None,
    block: int | None = None,
    **kwargs: Any,
) -> Steps[Forecast]:
    """Estimate the cost of a call (a dry run), given by its name on the wire.

    `mapped`, `reduce` and `block` are for `batch`. Nothing is run, unless there are guards: then the function is run
    once to check them.
    """
    function_call = yield from source.bind(args, kwargs, wrt, mapped if call == "batch" else ())
    recorded = yield from function_call.validated()
    options: Any = {"outputs": recorded.requested_nodes}
    if call != "forward":
        options["wrt"] = function_call.wrt(recorded)
    if call in ("gradients", "hessian", "hvp"):
        options["of"] = recorded.scalar_output(call)
    options |= {"types": function_call.types(recorded), "call": call}
    if call == "batch":
        options |= {"mapped": function_call.mapped(recorded), "reduce": reduce, "block": block}
    forecast: Forecast = yield (recorded.request_each if call == "batch" else recorded.request)("plan", **options)
    return forecast


def graph(source: Source, /, *args: Any, **kwargs: Any) -> Steps[Graph]:
    """Return the graph that is recorded for these arguments. Its leaves are named after the arguments."""
    call = yield from source.bind(args, kwargs)
    return (yield from call.validated()).registered.graph


def record_for(
    source: Source, /, library: Library, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Steps[tuple[Recorded, list[Any]]]:
    """Return the recording for the arrays of a library, and these arrays, one for each leaf. Used by bridges."""
    call = yield from source.bind(args, kwargs, library=library)
    recorded = yield from call.validated()
    _check_real(recorded)
    return recorded, call.library_arrays


def _check_real(recorded: Recorded) -> None:
    """Raise InputError for complex numbers: array libraries differ in their conventions for complex cotangents."""
    leaf_dtypes = [np.dtype(leaf.attrs["dtype"]) for leaf in recorded.leaves]
    for verb, dtype in [
        *(("takes", dtype) for dtype in leaf_dtypes),
        *(("returns", each.dtype) for each in recorded.outputs),
    ]:
        if dtype.kind == "c":
            raise InputError(
                f"bridges do not support complex numbers, but this function {verb} {dtype.name}: use two arrays "
                "for the real and the imaginary part"
            )


def _require_floats(recorded: Recorded, call: str) -> list[Node]:
    recorded.require_floats(call)
    return recorded.requested_nodes


def _cotangents(recorded: Recorded, cotangents: Any) -> Feeds:
    """Return a cotangent for each requested node.

    Cotangents of outputs that are the same node are added up. Guards have cotangent 0.
    """
    recorded.require_floats("vjp")
    feeds: Feeds = {guard.node: np.zeros(()) for guard in recorded.guards}
    for output, value in zip(recorded.outputs, match_leaves(cotangents, recorded.structure, "cotangents"), strict=True):
        array = as_array(value, output.dtype.name)
        feeds[output.node] = array + feeds[output.node] if output.node in feeds else array
    return feeds
