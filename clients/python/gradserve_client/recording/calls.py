"""All calls of a recorded function, from their arguments to what they give, as generators that ask a client."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.answers import Certificate, Forecast
from gradserve_client.errors import InputError
from gradserve_client.fields import Reduction
from gradserve_client.graph import Graph, Node
from gradserve_client.recording.arguments import Library, Which
from gradserve_client.recording.call import Feeds, FunctionCall, Source
from gradserve_client.recording.recorded import Recorded, Steps
from gradserve_client.recording.trees import matched
from gradserve_client.tensors import as_array


def value(source: Source, /, *args: Any, **kwargs: Any) -> Steps[Any]:
    """What the function gives back, with arrays of NumPy."""
    call = yield from source.called(args, kwargs)
    recorded, answer = yield from call.run(lambda r: r.ask("forward", feeds=call.feeds(r), outputs=r.asked))
    return recorded.values(answer.values)


def grad(source: Source, /, *args: Any, wrt: Which = 0, **kwargs: Any) -> Steps[Any]:
    """The gradient of a function that gives one float."""
    return (yield from _value_and_grad(source, "grad", args, kwargs, wrt))[1]


def value_and_grad(source: Source, /, *args: Any, wrt: Which = 0, **kwargs: Any) -> Steps[tuple[Any, Any]]:
    """The value and the gradient of a function that gives one float."""
    return (yield from _value_and_grad(source, "value_and_grad", args, kwargs, wrt))


def _value_and_grad(
    source: Source, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], wrt: Which
) -> Steps[tuple[Any, Any]]:
    call = yield from source.called(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.ask("gradients", feeds=call.feeds(r), of=r.scalar(name), wrt=call.wrt(r), outputs=r.asked)
    )
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def vjp(source: Source, /, *args: Any, cotangents: Any, wrt: Which = 0, **kwargs: Any) -> Steps[tuple[Any, Any]]:
    """The value, and cotangents, one for each array that the function gives back, times the Jacobian."""
    call = yield from source.called(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.ask(
            "vjp", feeds=call.feeds(r), cotangents=_cotangents(r, cotangents), wrt=call.wrt(r), outputs=r.asked
        )
    )
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def jvp(source: Source, /, *args: Any, tangents: Any, wrt: Which = 0, **kwargs: Any) -> Steps[tuple[Any, Any]]:
    """The value, and the Jacobian times tangents, which have the structure of the arguments of `wrt`."""
    call = yield from source.called(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.ask(
            "jvp", feeds=call.feeds(r), tangents=call.along(r, tangents, "tangents"), outputs=_floats(r, "jvp")
        )
    )
    return recorded.values(answer.values), recorded.values(answer.tangents)


def hvp(source: Source, /, *args: Any, vectors: Any, wrt: Which = 0, **kwargs: Any) -> Steps[Any]:
    """The Hessian of a function that gives one float, times vectors that are as the arguments of `wrt`."""
    call = yield from source.called(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.ask(
            "hvp",
            feeds=call.feeds(r),
            of=r.scalar("hvp"),
            wrt=call.wrt(r),
            vectors=call.along(r, vectors, "vectors"),
            outputs=r.asked,
        )
    )
    return call.by_argument(recorded, answer.hvp)


def hessian(source: Source, /, *args: Any, wrt: Which = 0, **kwargs: Any) -> Steps[Any]:
    """The Hessian of a function that gives one float: for each array of `wrt`, a block by each of them."""
    call = yield from source.called(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.ask("hessian", feeds=call.feeds(r), of=r.scalar("hessian"), wrt=call.wrt(r), outputs=r.asked)
    )
    nodes = call.wrt(recorded)
    rows = [call.built(answer.hessian[row, column] for column in nodes) for row in nodes]
    return call.built(rows)


def jacobian(source: Source, /, *args: Any, wrt: Which = 0, **kwargs: Any) -> Steps[Any]:
    """For each array that the function gives back, its Jacobian by each array of `wrt`."""
    call = yield from source.called(args, kwargs, wrt)
    recorded, answer = yield from call.run(
        lambda r: r.ask("jacobian", feeds=call.feeds(r), wrt=call.wrt(r), outputs=_floats(r, "jacobian"))
    )
    nodes = call.wrt(recorded)
    return recorded.built(lambda out: call.built(answer.jacobian[out.node, node] for node in nodes))


def batch(
    source: Source,
    /,
    *args: Any,
    mapped: Which | None = None,
    wrt: Which | None = None,
    reduce: Reduction = "none",
    block: int | None = None,
    **kwargs: Any,
) -> Steps[Any]:
    """The values of many examples in one call; with `wrt`, (values, gradients).

    Gradients are those of the one float that the function gives; of an array of floats they are its Jacobians.

    The arguments of `mapped`, by default all, have a leading axis of examples; so has what comes back, unless `reduce`
    adds up, `block` examples at a time.
    """
    call = yield from source.called(args, kwargs, () if wrt is None else wrt, mapped)
    if reduce != "none":
        return (yield from _reduced(call, wrt, reduce, block))
    if wrt is None:
        recorded, answer = yield from call.run(
            lambda r: r.ask("batch", feeds=call.feeds(r), mapped=call.mapped(r), outputs=r.asked)
        )
        return recorded.values(answer.values)
    recorded, answer = yield from call.run(
        lambda r: r.ask_each("batch", feeds=call.feeds(r), mapped=call.mapped(r), wrt=call.wrt(r), outputs=r.asked)
    )
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def _reduced(call: FunctionCall, wrt: Which | None, reduce: Reduction, block: int | None) -> Steps[Any]:
    """The sum or mean over examples, once guards are known to hold for each: of a sum nobody could tell."""
    recorded = yield from call.confirmed()
    asked: dict[str, Any] = {"reduce": reduce, "block": block}
    asked["outputs"] = [*dict.fromkeys(output.node for output in recorded.outputs)]
    asked |= {"feeds": call.feeds(recorded), "mapped": call.mapped(recorded)}
    if wrt is None:
        answer = yield recorded.ask("batch", **asked)
        return recorded.values(answer.values)
    answer = yield recorded.ask_each("batch", wrt=call.wrt(recorded), **asked)
    return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)


def check(
    source: Source,
    /,
    *args: Any,
    wrt: Which = 0,
    directions: int | None = None,
    tolerance: float | None = None,
    **kwargs: Any,
) -> Steps[Certificate]:
    """The gradient compared with central differences, by the server."""
    call = yield from source.called(args, kwargs, wrt)
    recorded = yield from call.confirmed()
    asked = {
        "of": recorded.scalar("check"),
        "wrt": call.wrt(recorded),
        "directions": directions,
        "tolerance": tolerance,
    }
    certificate: Certificate = yield recorded.ask("check", feeds=call.feeds(recorded), **asked)
    return certificate


def plan(
    source: Source,
    /,
    *args: Any,
    call: str = "gradients",
    wrt: Which = 0,
    mapped: Which | None = None,
    reduce: Reduction | None = None,
    block: int | None = None,
    **kwargs: Any,
) -> Steps[Forecast]:
    """What a call would take, by its name on the wire; `mapped`, `reduce` and `block` are for `batch`.

    Nothing is run, unless there are guards: then the function once, to see whether they hold.
    """
    asking = yield from source.called(args, kwargs, wrt, mapped if call == "batch" else ())
    recorded = yield from asking.confirmed()
    asked: Any = {"outputs": recorded.asked}
    if call != "forward":
        asked["wrt"] = asking.wrt(recorded)
    if call in ("gradients", "hessian", "hvp"):
        asked["of"] = recorded.scalar(call)
    asked |= {"types": asking.types(recorded), "call": call}
    if call == "batch":
        asked |= {"mapped": asking.mapped(recorded), "reduce": reduce, "block": block}
    forecast: Forecast = yield (recorded.ask_each if call == "batch" else recorded.ask)("plan", **asked)
    return forecast


def graph(source: Source, /, *args: Any, **kwargs: Any) -> Steps[Graph]:
    """The graph that is recorded for these arguments. Its leaves are called as the arguments."""
    call = yield from source.called(args, kwargs)
    return (yield from call.confirmed()).registered.graph


def recorded_for(
    source: Source, /, library: Library, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Steps[tuple[Recorded, list[Any]]]:
    """What is recorded for arguments of a library, and the arrays among these, one for each leaf."""
    call = yield from source.called(args, kwargs, library=library)
    recorded = yield from call.confirmed()
    _check_real(recorded)
    return recorded, call.given


def _check_real(recorded: Recorded) -> None:
    """Raise InputError where complex numbers would go to a library: their cotangents are each one's own."""
    given = [np.dtype(leaf.attrs["dtype"]) for leaf in recorded.leaves]
    for what, dtype in [*(("takes", dtype) for dtype in given), *(("gives", each.dtype) for each in recorded.outputs)]:
        if dtype.kind == "c":
            raise InputError(
                f"bridges pass no complex numbers, and this function {what} {dtype.name}: pass real and imaginary part "
                "as two arrays"
            )


def _floats(recorded: Recorded, call: str) -> list[Node]:
    recorded.floats(call)
    return recorded.asked


def _cotangents(recorded: Recorded, cotangents: Any) -> Feeds:
    """One for each node that is asked for: what the outputs have, added where two are the same node; 0 for guards."""
    recorded.floats("vjp")
    given: Feeds = {guard.node: np.zeros(()) for guard in recorded.guards}
    for output, value in zip(recorded.outputs, matched(cotangents, recorded.structure, "cotangents"), strict=True):
        array = as_array(value, output.dtype.name)
        given[output.node] = array + given[output.node] if output.node in given else array
    return given
