"""Functions that a server differentiates, for asyncio: the same calls, awaited."""

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


class OfAsyncFunction(Generic[P, T]):
    """A call as a method of a function, to be awaited."""

    def __init__(self, call: Callable[Concatenate[Source, P], Steps[T]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, f: AsyncFunction, owner: type[AsyncFunction]) -> Callable[P, Coroutine[Any, Any, T]]:
        """The call of this function."""

        def called(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            return f.run(self._call(f.source, *args, **kwargs))

        return called


class AsyncFunction:
    """A function whose values and derivatives a server computes: `function` makes it of an AsyncClient.

    Its calls are those of `Function`, awaited. It may not look at values.
    """

    def __init__(self, function: Callable[..., Any], client: AsyncClient, static: Sequence[str]) -> None:
        functools.update_wrapper(self, function)
        #: what asks
        self.client = client
        self.source = Source(function, static, None)

    def __repr__(self) -> str:
        return f"<recorded function {self.source.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Its value, to be awaited; within a function that is being recorded, a part of that, at once."""
        leaves, _ = flatten((args, kwargs), is_array)
        if any(isinstance(leaf.value, Traced) for leaf in leaves):
            return self.source.function(*args, **kwargs)
        return self.value(*args, **kwargs)

    value = OfAsyncFunction(calls.value)
    grad = OfAsyncFunction(calls.grad)
    value_and_grad = OfAsyncFunction(calls.value_and_grad)
    vjp = OfAsyncFunction(calls.vjp)
    jvp = OfAsyncFunction(calls.jvp)
    hvp = OfAsyncFunction(calls.hvp)
    hessian = OfAsyncFunction(calls.hessian)
    jacobian = OfAsyncFunction(calls.jacobian)
    batch = OfAsyncFunction(calls.batch)
    check = OfAsyncFunction(calls.check)
    plan = OfAsyncFunction(calls.plan)
    graph = OfAsyncFunction(calls.graph)

    async def run(self, steps: Steps[T]) -> T:
        """Ask the client what is to be asked, until there is a result."""
        try:
            ask = next(steps)
            while True:
                ask = steps.send(await getattr(self.client, ask.call)(ask.on, **ask.asked))
        except StopIteration as end:
            return cast("T", end.value)
