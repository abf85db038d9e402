"""Functions that a server differentiates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, cast, overload

from gradserve_client.async_client import AsyncClient
from gradserve_client.client import Client
from gradserve_client.errors import InputError
from gradserve_client.recording import calls
from gradserve_client.recording.arguments import Library, is_array
from gradserve_client.recording.async_function import AsyncFunction
from gradserve_client.recording.call import Source
from gradserve_client.recording.default_client import default_client
from gradserve_client.recording.maps import Map
from gradserve_client.recording.recorded import Recorded, Steps
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.trees import flatten

P = ParamSpec("P")
T = TypeVar("T")
ValuesMode = Literal["never", "guarded"]


class OfFunction(Generic[P, T]):
    """A call as a method of a function, which waits for the answers."""

    def __init__(self, call: Callable[Concatenate[Source, P], Steps[T]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, f: Function, owner: type[Function]) -> Callable[P, T]:
        """The call of this function."""

        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            return f.run(self._call(f.source, *args, **kwargs))

        return called


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
        functools.update_wrapper(self, function)
        self._client = client
        self.source = Source(function, static, (lambda: self.client) if values == "guarded" else None)

    def __repr__(self) -> str:
        return f"<recorded function {self.source.name}>"

    @property
    def client(self) -> Client:
        """The client that asks."""
        return self._client or default_client()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Its value; within a function that is being recorded, a part of that."""
        leaves, _ = flatten((args, kwargs), is_array)
        if any(isinstance(leaf.value, Traced) for leaf in leaves):
            return self.source.function(*args, **kwargs)
        return self.value(*args, **kwargs)

    value = OfFunction(calls.value)
    grad = OfFunction(calls.grad)
    value_and_grad = OfFunction(calls.value_and_grad)
    vjp = OfFunction(calls.vjp)
    jvp = OfFunction(calls.jvp)
    hvp = OfFunction(calls.hvp)
    hessian = OfFunction(calls.hessian)
    jacobian = OfFunction(calls.jacobian)
    batch = OfFunction(calls.batch)
    check = OfFunction(calls.check)
    plan = OfFunction(calls.plan)
    graph = OfFunction(calls.graph)

    def run(self, steps: Steps[T]) -> T:
        """Ask the client what is to be asked, until there is a result."""
        try:
            ask = next(steps)
            while True:
                ask = steps.send(getattr(self.client, ask.call)(ask.on, **ask.asked))
        except StopIteration as end:
            return cast("T", end.value)

    def mapped_for(
        self, library: Library, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Recorded, Map, list[Any]]:
        """For bridges: what is recorded for arguments of a library, as a map, and the arrays among these for it."""
        recorded, given = self.run(calls.recorded_for(self.source, library, args, kwargs))
        return recorded, recorded.map(self.client), given


@overload
def function(
    f: Callable[..., Any], /, *, client: Client | None = None, values: ValuesMode = "never", static: Sequence[str] = ()
) -> Function: ...
@overload
def function(
    f: Callable[..., Any], /, *, client: AsyncClient, values: ValuesMode = "never", static: Sequence[str] = ()
) -> AsyncFunction: ...
@overload
def function(
    f: None = None, /, *, client: Client | None = None, values: ValuesMode = "never", static: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Function]: ...
@overload
def function(
    f: None = None, /, *, client: AsyncClient, values: ValuesMode = "never", static: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], AsyncFunction]: ...
def function(
    f: Callable[..., Any] | None = None,
    /,
    *,
    client: Client | AsyncClient | None = None,
    values: ValuesMode = "never",
    static: Sequence[str] = (),
) -> Any:
    """A function written with operators, or against the Array API standard, as one that a server differentiates.

        @gs.function
        def loss(w, x):
            xp = w.__array_namespace__()
            return xp.mean(xp.square(xp.tanh(x @ w)))

        loss.value_and_grad(w, x)

    `client` asks; by default the one of the server that GRADSERVE_URL names. With an AsyncClient, calls are awaited.

    `values="guarded"` lets the function look at values, with `bool`, `float` and `int`: they are those of the example
    for which it is recorded, and later calls ask for them, too. Where one comes out otherwise, the answer is discarded
    and the function recorded anew, at most eight times. `static` names arguments that are taken as they are, such as
    axes: the function is recorded for each.
    """
    if values not in ("never", "guarded"):
        raise InputError(f'values is "never" or "guarded", and not {values!r}')
    if f is None:
        return functools.partial(function, client=client, values=values, static=static)
    if not isinstance(client, AsyncClient):
        return Function(f, client, values, static)
    if values == "guarded":
        raise InputError(
            "a look at a value cannot be awaited while the function runs: take a Client for guarded values"
        )
    return AsyncFunction(f, client, static)
