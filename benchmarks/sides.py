"""Who runs the workloads: this engine, PyTorch and JAX, each from resident operands to finished results."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Hashable, Iterator
from types import SimpleNamespace
from typing import Any

from benchmarks.workloads import Workload
from engine import Compiler, Limits, Program, Statement, TensorType, open_executor, registry

Call = Callable[[], object]
LIMITS = Limits(nodes=1_000_000, bytes=64 << 30, flops=10**14)


class Recorder:
    """`ops` for the engine: every function appends a node and returns its id."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def append(*operands: int) -> int:
            self.statements.append(Statement(registry().ops[name], operands))
            return len(self.statements) - 1

        return append


def gradserve(work: Workload, device: str) -> tuple[float, Call]:
    """Seconds from statements to a plan, and a call that runs it."""
    ops = Recorder()
    leaves = [ops.parameter() for _ in work.parameters] + [ops.input() for _ in work.data]
    work.loss(ops, *leaves)
    arrays = dict(enumerate([*work.parameters, *work.data]))
    types = {i: TensorType.of(a) for i, a in arrays.items()}
    start = time.perf_counter()
    plan = Compiler(LIMITS).gradients(Program(registry(), ops.statements, LIMITS), types).plan
    planning = time.perf_counter() - start
    executor = open_executor(device)
    feeds: dict[Hashable, Any] = {i: executor.to_device(a) for i, a in arrays.items()}

    def call() -> object:
        results = executor.execute(plan, feeds)
        return executor.to_host(results[:1])

    return planning, call


def torch(work: Workload, device: str) -> tuple[float, Call]:
    """Eager PyTorch."""
    import torch as library  # noqa: PLC0415 - a peer, where installed
    from torch.nn import functional  # noqa: PLC0415

    ops = SimpleNamespace(
        add=library.add, mul=library.mul, matmul=library.matmul, sum=library.sum, sin=library.sin, tanh=library.tanh,
        exp=library.exp, square=library.square, relu=library.relu, cross_entropy=functional.cross_entropy,
    )  # fmt: skip
    place = "cuda" if device == "cuda" else "cpu"
    parameters = [library.tensor(a, device=place, requires_grad=True) for a in work.parameters]
    data = [library.tensor(a, device=place) for a in work.data]

    def call() -> object:
        loss = work.loss(ops, *parameters, *data)
        gradients = library.autograd.grad(loss, parameters)
        return loss.item(), gradients

    return 0.0, call


def jax(work: Workload, device: str) -> tuple[float, Call]:
    """JAX, compiled; the first element is what compiling took."""
    import jax as library  # noqa: PLC0415 - a peer, where installed
    import jax.numpy as jnp  # noqa: PLC0415

    def cross_entropy(logits: Any, targets: Any) -> Any:
        logp = library.nn.log_softmax(logits)
        return -jnp.take_along_axis(logp, targets[:, None], 1).mean()

    ops = SimpleNamespace(
        add=jnp.add, mul=jnp.multiply, matmul=jnp.matmul, sum=jnp.sum, sin=jnp.sin, tanh=jnp.tanh,
        exp=jnp.exp, square=jnp.square, relu=library.nn.relu, cross_entropy=cross_entropy,
    )  # fmt: skip
    place = library.devices("gpu" if device == "cuda" else "cpu")[0]
    parameters, data = (library.device_put(arrays, place) for arrays in (work.parameters, work.data))
    compiled = library.jit(library.value_and_grad(lambda parameters, data: work.loss(ops, *parameters, *data)))
    start = time.perf_counter()
    library.block_until_ready(compiled(parameters, data))
    return time.perf_counter() - start, lambda: library.block_until_ready(compiled(parameters, data))


def sides() -> Iterator[tuple[str, Callable[[Workload, str], tuple[float, Call]]]]:
    """The engine first, then the peers that are installed."""
    yield "gradserve", gradserve
    for name, side in (("torch", torch), ("jax", jax)):
        if importlib.util.find_spec(name):
            yield name, side
