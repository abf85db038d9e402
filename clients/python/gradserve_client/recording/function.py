"""Functions that a server differentiates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from gradserve_client.answers import Certificate, Forecast
from gradserve_client.client import Client
from gradserve_client.errors import InputError
from gradserve_client.graph import Graph, Node
from gradserve_client.recording.arguments import Library, Which, is_array
from gradserve_client.recording.call import Feeds, FunctionCall, Source
from gradserve_client.recording.recorded import Recorded
from gradserve_client.recording.traced import Traced
from gradserve_client.recording.trees import flatten, matched
from gradserve_client.tensors import as_array

ValuesMode = Literal["never", "guarded"]


class Function:
    """A function whose values and derivatives a server computes: `function` makes it.

    Calls take the arguments of the function: arrays, numbers, handles of what the server keeps, and lists, tuples and
    dicts of these. Strings, None, True and False, and what `static` names, are part of what is recorded. The function
    is recorded once for each structure, dtypes and shapes of its arguments; then its graph is registered, and later
    calls send the arrays alone.

    `wrt` says by which arguments one differentiates: by position or name, or several of these, whose derivatives then
    come as a tuple; by default by the first. Derivatives have the structure of their argument.

    Raises RecordingError for what cannot be recorded, and what calls of the client raise.
    """

    def __init__(
        self, function: Callable[..., Any], client: Client | None, values: ValuesMode, static: Sequence[str]
    ) -> None:
        if values not in ("never", "guarded"):
            raise InputError(f'values is "never" or "guarded", and not {values!r}')
        functools.update_wrapper(self, function)
        names = (static,) if isinstance(static, str) else tuple(static)
        self._source = Source(function, client, names, may_look=values == "guarded")

    def __repr__(self) -> str:
        return f"<recorded function {self._source.name}>"

    @property
    def client(self) -> Client:
        """The client that asks."""
        return self._source.client

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Its value; within a function that is being recorded, a part of that."""
        leaves, _ = flatten((args, kwargs), is_array)
        if any(isinstance(leaf.value, Traced) for leaf in leaves):
            return self._source.function(*args, **kwargs)
        return self.value(*args, **kwargs)

    def value(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives back, with arrays of NumPy."""
        call = FunctionCall(self._source, args, kwargs)
        recorded, answer = call.run(lambda r: r.registered.forward(call.feeds(r), outputs=r.asked))
        return recorded.values(answer.values)

    def grad(self, *args: Any, wrt: Which = 0, **kwargs: Any) -> Any:
        """The gradient of a function that gives one float."""
        return self._value_and_grad("grad", args, kwargs, wrt)[1]

    def value_and_grad(self, *args: Any, wrt: Which = 0, **kwargs: Any) -> tuple[Any, Any]:
        """The value and the gradient of a function that gives one float."""
        return self._value_and_grad("value_and_grad", args, kwargs, wrt)

    def _value_and_grad(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], wrt: Which) -> tuple[Any, Any]:
        call = FunctionCall(self._source, args, kwargs, wrt)
        recorded, answer = call.run(
            lambda r: r.registered.gradients(call.feeds(r), of=r.scalar(name), wrt=call.wrt(r), outputs=r.asked)
        )
        return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)

    def vjp(self, *args: Any, cotangents: Any, wrt: Which = 0, **kwargs: Any) -> tuple[Any, Any]:
        """The value, and cotangents, one for each array that the function gives back, times the Jacobian."""
        call = FunctionCall(self._source, args, kwargs, wrt)
        recorded, answer = call.run(
            lambda r: r.registered.vjp(
                call.feeds(r), cotangents=_cotangents(r, cotangents), wrt=call.wrt(r), outputs=r.asked
            )
        )
        return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)

    def jvp(self, *args: Any, tangents: Any, wrt: Which = 0, **kwargs: Any) -> tuple[Any, Any]:
        """The value, and the Jacobian times tangents, which have the structure of the arguments of `wrt`."""
        call = FunctionCall(self._source, args, kwargs, wrt)
        recorded, answer = call.run(
            lambda r: r.registered.jvp(
                call.feeds(r), tangents=call.along(r, tangents, "tangents"), outputs=_floats(r, "jvp")
            )
        )
        return recorded.values(answer.values), recorded.values(answer.tangents)

    def hvp(self, *args: Any, vectors: Any, wrt: Which = 0, **kwargs: Any) -> Any:
        """The Hessian of a function that gives one float, times vectors that are as the arguments of `wrt`."""
        call = FunctionCall(self._source, args, kwargs, wrt)
        recorded, answer = call.run(
            lambda r: r.registered.hvp(
                call.feeds(r),
                of=r.scalar("hvp"),
                wrt=call.wrt(r),
                vectors=call.along(r, vectors, "vectors"),
                outputs=r.asked,
            )
        )
        return call.by_argument(recorded, answer.hvp)

    def hessian(self, *args: Any, wrt: Which = 0, **kwargs: Any) -> Any:
        """The Hessian of a function that gives one float: for each array of `wrt`, a block by each of them."""
        call = FunctionCall(self._source, args, kwargs, wrt)
        recorded, answer = call.run(
            lambda r: r.registered.hessian(call.feeds(r), of=r.scalar("hessian"), wrt=call.wrt(r), outputs=r.asked)
        )
        nodes = call.wrt(recorded)
        rows = [call.built(answer.hessian[row, column] for column in nodes) for row in nodes]
        return call.built(rows)

    def jacobian(self, *args: Any, wrt: Which = 0, **kwargs: Any) -> Any:
        """For each array that the function gives back, its Jacobian by each array of `wrt`."""
        call = FunctionCall(self._source, args, kwargs, wrt)
        recorded, answer = call.run(
            lambda r: r.registered.jacobian(call.feeds(r), wrt=call.wrt(r), outputs=_floats(r, "jacobian"))
        )
        nodes = call.wrt(recorded)
        return recorded.built(lambda out: call.built(answer.jacobian[out.node, node] for node in nodes))

    def batch(self, *args: Any, mapped: Which | None = None, wrt: Which | None = None, **kwargs: Any) -> Any:
        """The values of many examples in one call; with `wrt` and one float each, (values, gradients).

        The arguments of `mapped`, by default all, have a leading axis of examples; so has what comes back.
        """
        call = FunctionCall(self._source, args, kwargs, () if wrt is None else wrt, mapped)
        if wrt is None:
            recorded, answer = call.run(
                lambda r: r.registered.batch(call.feeds(r), mapped=call.mapped(r), outputs=r.asked)
            )
            return recorded.values(answer.values)
        recorded, answer = call.run(
            lambda r: r.registered.batch(
                call.feeds(r), mapped=call.mapped(r), of=r.scalar("batch"), wrt=call.wrt(r), outputs=r.asked
            )
        )
        return recorded.values(answer.values), call.by_argument(recorded, answer.gradients)

    def check(
        self, *args: Any, wrt: Which = 0, directions: int | None = None, tolerance: float | None = None, **kwargs: Any
    ) -> Certificate:
        """The gradient compared with central differences, by the server."""
        call = FunctionCall(self._source, args, kwargs, wrt)
        recorded = call.confirmed()
        asked: Any = {"directions": directions, "tolerance": tolerance}
        return recorded.registered.check(
            call.feeds(recorded), of=recorded.scalar("check"), wrt=call.wrt(recorded), **asked
        )

    def plan(
        self, *args: Any, call: str = "gradients", wrt: Which = 0, mapped: Which | None = None, **kwargs: Any
    ) -> Forecast:
        """What a call would take, by its name on the wire; `mapped` is for `batch`.

        Nothing is run, unless there are guards: then the function once, to see whether they hold.
        """
        asking = FunctionCall(self._source, args, kwargs, wrt, mapped if call == "batch" else ())
        recorded = asking.confirmed()
        asked: Any = {"outputs": recorded.asked}
        if call != "forward":
            asked["wrt"] = asking.wrt(recorded)
        if call in ("gradients", "hessian", "hvp", "batch"):
            asked["of"] = recorded.scalar(call)
        if call == "batch":
            asked["mapped"] = asking.mapped(recorded)
        return recorded.registered.plan(asking.types(recorded), call=call, **asked)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph that is recorded for these arguments. Its leaves are called as the arguments."""
        return FunctionCall(self._source, args, kwargs).confirmed().registered.graph

    def recorded_for(
        self, library: Library, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Recorded, list[Any]]:
        """For bridges: what is recorded for arguments of a library, and the arrays among these, one for each leaf."""
        call = FunctionCall(self._source, args, kwargs, library=library)
        return call.confirmed(), call.given


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


@overload
def function(
    f: Callable[..., Any], /, *, client: Client | None = None, values: ValuesMode = "never", static: Sequence[str] = ()
) -> Function: ...
@overload
def function(
    f: None = None, /, *, client: Client | None = None, values: ValuesMode = "never", static: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    f: Callable[..., Any] | None = None,
    /,
    *,
    client: Client | None = None,
    values: ValuesMode = "never",
    static: Sequence[str] = (),
) -> Function | Callable[[Callable[..., Any]], Function]:
    """A function written with operators, or against the Array API standard, as one that a server differentiates.

        @gs.function
        def loss(w, x):
            xp = w.__array_namespace__()
            return xp.mean(xp.square(xp.tanh(x @ w)))

        loss.value_and_grad(w, x)

    `client` asks; by default the one of the server that GRADSERVE_URL names. `values="guarded"` lets the function look
    at values, with `bool`, `float` and `int`: they are those of the example for which it is recorded, and later calls
    ask for them, too. Where one comes out otherwise, the answer is discarded and the function recorded anew, at most
    eight times. `static` names arguments that are taken as they are, such as axes: the function is recorded for each.
    """
    if f is None:
        return lambda decorated: Function(decorated, client, values, static)
    return Function(f, client, values, static)
