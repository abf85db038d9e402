"""Recorded functions, whose values and derivatives a server computes."""

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


class FunctionMethod(Generic[P, T]):
    """A descriptor: a call as a method of a recorded function, which waits for the result."""

    def __init__(self, call: Callable[Concatenate[Source, P], Steps[T]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, f: Function, owner: type[Function]) -> Callable[P, T]:
        """Return the call bound to this function."""

        def bound_call(*args: P.args, **kwargs: P.kwargs) -> T:
            return f.run(self._call(f.source, *args, **kwargs))

        return bound_call


class Function:
    """A recorded function, whose values and derivatives a server computes. Created by `function`.

    Calls take the arguments of the function: arrays, numbers, resident tensors, and lists, tuples and dicts of these.
    All other values, such as strings, None and bools, and the arguments named in `static`, become part of the
    recording. The function is recorded once for each combination of structure, dtypes and shapes of its arguments. Its
    graph is then registered, and later calls send only the arrays.

    `wrt` selects the arguments to differentiate with respect to: a position, a name, or a sequence of these, for which
    the derivatives are a tuple. It defaults to the first argument. Derivatives have the structure of their argument.

    Raises RecordingError for operations that cannot be recorded, and the exceptions of the client.
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
        """The client that makes the calls."""
        return self._client or default_client()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value; inside a function that is being recorded, append this function's operations to it."""
        leaves, _ = flatten((args, kwargs), is_array)
        if any(isinstance(leaf.value, Traced) for leaf in leaves):
            return self.source.function(*args, **kwargs)
        return self.value(*args, **kwargs)

    value = FunctionMethod(calls.value)
    grad = FunctionMethod(calls.grad)
    value_and_grad = FunctionMethod(calls.value_and_grad)
    vjp = FunctionMethod(calls.vjp)
    jvp = FunctionMethod(calls.jvp)
    hvp = FunctionMethod(calls.hvp)
    hessian = FunctionMethod(calls.hessian)
    jacobian = FunctionMethod(calls.jacobian)
    batch = FunctionMethod(calls.batch)
    check = FunctionMethod(calls.check)
    plan = FunctionMethod(calls.plan)
    graph = FunctionMethod(calls.graph)

    def run(self, steps: Steps[T]) -> T:
        """Make the client calls that the steps yield, until they return a result."""
        try:
            client_call = next(steps)
            while True:
                client_call = steps.send(
                    getattr(self.client, client_call.call)(client_call.target, **client_call.options)
                )
        except StopIteration as end:
            return cast("T", end.value)

    def map_for(
        self, library: Library, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Recorded, Map, list[Any]]:
        """Record the function for the arrays of a library, for bridges.

        Returns the recording, its map, and the arrays among the arguments, one for each input of the map.
        """
        recorded, arrays = self.run(calls.record_for(self.source, library, args, kwargs))
        return recorded, recorded.map(self.client), arrays


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
    """Turn a Python function into one that a server evaluates and differentiates. Can be used as a decorator.

        @gs.function
        def loss(w, x):
            xp = w.__array_namespace__()
            return xp.mean(xp.square(xp.tanh(x @ w)))

        loss.value_and_grad(w, x)

    The function is written with operators, or with the functions of the Array API standard.

    `client` defaults to a client of the server at GRADSERVE_URL. With an AsyncClient, calls are coroutines.

    `values="guarded"` lets the function read values, with `bool`, `float` and `int`. They are those of the arguments
    for which it is recorded, and later calls request them too. If one differs, the result is discarded and the function
    is recorded again, at most eight times. `static` names arguments, such as axes, that are passed as they are: the
    function is recorded for each value.

    Raises InputError for an unknown `values`, and for guarded values with an AsyncClient.
    """
    if values not in ("never", "guarded"):
        raise InputError(f'values must be "never" or "guarded", not {values!r}')
    if f is None:
        return functools.partial(function, client=client, values=values, static=static)
    if not isinstance(client, AsyncClient):
        return Function(f, client, values, static)
    if values == "guarded":
        raise InputError(
            "a value that is read cannot be awaited while the function runs: use a Client for guarded values"
        )
    return AsyncFunction(f, client, static)
