"""Recorded functions for asyncio: the calls of `Function` as coroutines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from gradserve_client.async_client import AsyncClient
from gradserve_client.recording import calls
from gradserve_client.recording.arguments import is_array
from gradserve_client.recording.call import Source
from gradserve_client.recording.recorded import Steps
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.trees import flatten

P = ParamSpec("P")
T = TypeVar("T")


class AsyncFunctionMethod(Generic[P, T]):
    """A descriptor: a call as a coroutine method of a recorded function."""

    def __init__(self, call: Callable[Concatenate[Source, P], Steps[T]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, f: AsyncFunction, owner: type[AsyncFunction]) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return the call bound to this function."""

        def bound_call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            return f.run(self._call(f.source, *args, **kwargs))

        return bound_call


class AsyncFunction:
    """A recorded function, whose values and derivatives a server computes. Created by `function` with an AsyncClient.

    Its calls are those of `Function`, as coroutines. It cannot read values while it is recorded.
    """

    def __init__(self, function: Callable[..., Any], client: AsyncClient, static: Sequence[str]) -> None:
        functools.update_wrapper(self, function)
        #: the client that makes the calls
        self.client = client
        self.source = Source(function, static, None)

    def __repr__(self) -> str:
        return f"<recorded function {self.source.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the value, to be awaited; inside a function that is being recorded, append its operations, at once."""
        leaves, _ = flatten((args, kwargs), is_array)
        if any(isinstance(leaf.value, Traced) for leaf in leaves):
            return self.source.function(*args, **kwargs)
        return self.value(*args, **kwargs)

    value = AsyncFunctionMethod(calls.value)
    grad = AsyncFunctionMethod(calls.grad)
    value_and_grad = AsyncFunctionMethod(calls.value_and_grad)
    vjp = AsyncFunctionMethod(calls.vjp)
    jvp = AsyncFunctionMethod(calls.jvp)
    hvp = AsyncFunctionMethod(calls.hvp)
    hessian = AsyncFunctionMethod(calls.hessian)
    jacobian = AsyncFunctionMethod(calls.jacobian)
    batch = AsyncFunctionMethod(calls.batch)
    check = AsyncFunctionMethod(calls.check)
    plan = AsyncFunctionMethod(calls.plan)
    graph = AsyncFunctionMethod(calls.graph)

    async def run(self, steps: Steps[T]) -> T:
        """Make the client calls that the steps yield, until they return a result."""
        try:
            client_call = next(steps)
            while True:
                client_call = steps.send(
                    await getattr(self.client, client_call.call)(client_call.target, **client_call.options)
                )
        except StopIteration as end:
            return cast("T", end.value)
