"""PyTorch (eager and compiled), JAX, HIPS autograd and SciPy, each in the configuration that serves it best.

Compilation is cold, since their disk caches are off (`report` sees to it); what was fed is resident, and a call ends
when its results are complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.sides import Prepare, Prepared, gradserve, is_installed, timed
from benchmarks.vocabularies import autograd_ops, jax_ops, torch_ops
from benchmarks.vocabularies_of_matrices import scipy_ops
from benchmarks.workload import Array, Question, Unsupported, Workload
from engine.ir.run_report import IEEE, Precision

#: how float32 is read on a card, on all sides, and what JAX calls it
READ_BY_JAX: Final[Mapping[Precision, str]] = {IEEE: "highest", "tf32": "tensorfloat32"}


def torch_eager(work: Workload, device: str) -> Prepared:
    """PyTorch as it comes."""
    return _torch(work, device, "torch", lambda function: function)


def torch_compiled(work: Workload, device: str) -> Prepared:
    """torch.compile, for these shapes."""
    import torch  # noqa: PLC0415 - a peer, where installed
    from torch._functorch import config  # noqa: PLC0415 - two gradients of one compiled graph need it

    config.donated_buffer = work.question is not Question.ROWS
    torch._dynamo.reset()  # noqa: SLF001 - its public name, too, begins with an underscore
    return _torch(work, device, "torch.compile", partial(torch.compile, dynamic=False, fullgraph=True))


def _torch(work: Workload, device: str, side: str, made: Callable[[Any], Any]) -> Prepared:
    import torch  # noqa: PLC0415 - a peer, where installed

    place = "cuda" if device == "cuda" else "cpu"
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    read_by_torch(torch, work.precision)
    parameters = [torch.tensor(a, device=place, requires_grad=True) for a in work.parameters]
    data = [torch.tensor(a, device=place) for a in work.data]
    run = _torch_question(work.question, made, partial(work.function_for(side), torch_ops()), parameters, data)

    def read(results: Any) -> list[Array]:
        return [x.detach().resolve_conj().cpu().numpy() for x in _flat(results)]

    def call() -> object:
        if work.from_host:
            with torch.no_grad():
                for there, here in zip([*parameters, *data], work.arrays, strict=True):
                    there.copy_(torch.from_numpy(here))
            return read(run())
        results = run()
        if place == "cuda":
            torch.cuda.synchronize()
        return results

    seconds: dict[str, float] = {}
    timed("first run", seconds, call)
    return Prepared(seconds, call, list if work.from_host else read)


def read_by_torch(torch: Any, precision: Precision) -> None:
    """Let a card's products and convolutions read float32 so, and add float16 up in float32, as the others do.

    PyTorch's defaults are TF32, of convolutions, and sums of some parts in float16. Raises Unsupported for what PyTorch
    has no setting for.
    """
    if precision not in READ_BY_JAX:
        raise Unsupported(f"reads no float32 as {precision}")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def _torch_question(
    question: Question, made: Callable[[Any], Any], function: Any, parameters: list[Any], data: list[Any]
) -> Callable[[], object]:
    import torch  # noqa: PLC0415 - a peer, where installed

    if question is Question.JACOBIAN:
        free = [x.detach() for x in parameters]
        whole = made(torch.func.jacfwd(lambda x, *fixed: (function(x, *fixed),) * 2, has_aux=True))
        return lambda: whole(*free, *data)[::-1]
    if question is Question.EXAMPLES:
        return _torch_examples(made, function, parameters, data)
    compiled = made(function)
    if question is Question.VALUES:
        return torch.no_grad()(lambda: compiled(*parameters, *data))  # type: ignore[no-any-return]

    def gradients() -> object:
        results = compiled(*parameters, *data)
        several = results if isinstance(results, list | tuple) else [results]
        ones = [torch.ones_like(y) for y in several]
        pulled = [
            torch.autograd.grad(y, parameters, one, i + 1 < len(several), materialize_grads=True)
            for i, (y, one) in enumerate(zip(several, ones, strict=True))
        ]
        return several, pulled

    return gradients


def _torch_examples(
    made: Callable[[Any], Any], function: Any, parameters: list[Any], data: list[Any]
) -> Callable[[], object]:
    import torch  # noqa: PLC0415 - a peer, where installed

    free = [x.detach() for x in parameters]
    single = torch.func.grad_and_value(function, argnums=tuple(range(len(free))))
    mapped = made(torch.vmap(single, in_dims=(*[None] * len(free), *[0] * len(data))))
    return lambda: mapped(*free, *data)[::-1]


def jax(work: Workload, device: str) -> Prepared:
    """JAX, jitted as a whole. Whole numbers are int32, its own kind; floats are of the workload's dtype."""
    import jax as library  # noqa: PLC0415 - a peer, where installed

    library.config.update("jax_enable_x64", True)
    library.config.update("jax_default_matmul_precision", READ_BY_JAX[work.precision])
    place = library.devices("gpu" if device == "cuda" else "cpu")[0]
    put = partial(library.device_put, device=place)
    leaves = [put(_narrow(a)) for a in work.arrays]
    compiled = library.jit(_jax_question(work, partial(work.function_for("jax"), jax_ops())))

    def read(results: Any) -> list[Array]:
        return [np.asarray(x) for x in _flat(results)]

    def call() -> object:
        if work.from_host:
            return read(compiled(*(put(_narrow(a)) for a in work.arrays)))
        return library.block_until_ready(compiled(*leaves))

    seconds: dict[str, float] = {}
    timed("first run", seconds, call)
    return Prepared(seconds, call, list if work.from_host else read)


def _narrow(array: Array) -> Array:
    return array.astype("int32") if array.dtype.kind == "i" else array


def _jax_question(work: Workload, function: Any) -> Callable[..., Any]:
    import jax as library  # noqa: PLC0415 - a peer, where installed

    count = len(work.parameters)
    by = tuple(range(count))
    if work.question is Question.VALUES:
        return function  # type: ignore[no-any-return]
    if work.question is Question.JACOBIAN:
        return lambda *leaves: (function(*leaves), library.jacfwd(function)(*leaves))
    if work.question is Question.EXAMPLES:
        axes = (*[None] * count, *[0] * len(work.data))
        return library.vmap(library.value_and_grad(function, by), axes)  # type: ignore[no-any-return]
    if work.question is Question.GRADIENTS:
        return _steepest(library.value_and_grad(function, by))

    def rows(*leaves: Any) -> Any:
        several = function(*leaves)
        sums = [lambda *xs, k=k: function(*xs)[k].sum() for k in range(len(several))]
        return several, [library.grad(each, by)(*leaves) for each in sums]

    return rows


def _steepest(asked: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients by complex leaves as the others give them: JAX's are their conjugates."""
    import jax.numpy as jnp  # noqa: PLC0415 - a peer, where installed

    def conjugated(*leaves: Any) -> Any:
        value, gradients = asked(*leaves)
        return value, [jnp.conj(g) if jnp.iscomplexobj(g) else g for g in gradients]

    return conjugated


def scipy(work: Workload, device: str) -> Prepared:
    """NumPy and SciPy, op by op: what LAPACK and pocketfft take by themselves. Asked for values, where it is named.

    Its times are printed and kept, but have no column on the page: it is no peer.
    """
    if "scipy" not in work.sides or device == "cuda" or work.question is not Question.VALUES:
        raise Unsupported(NOT_ASKED)
    function = partial(work.function_for("scipy"), scipy_ops())
    seconds: dict[str, float] = {}
    timed("first run", seconds, lambda: function(*work.arrays))
    return Prepared(seconds, lambda: function(*work.arrays), lambda results: [np.asarray(x) for x in _flat(results)])


def autograd(work: Workload, device: str) -> Prepared:
    """HIPS autograd: NumPy, and a tape written in Python."""
    if device == "cuda" or work.question is not Question.GRADIENTS:
        raise Unsupported("runs on the CPU, and is asked for gradients only")
    from autograd.core import make_vjp  # noqa: PLC0415 - a peer, where installed
    from autograd.extend import vspace  # noqa: PLC0415

    function = partial(work.function_for("autograd"), autograd_ops())

    def call() -> object:
        pull, value = make_vjp(lambda leaves: function(*leaves, *work.data), tuple(work.parameters))
        return value, pull(vspace(value).ones())

    seconds: dict[str, float] = {}
    timed("first run", seconds, call)
    return Prepared(seconds, call, lambda results: [np.asarray(x) for x in _flat(results)])


def _flat(results: Any) -> list[Any]:
    if isinstance(results, list | tuple):
        return [x for part in results for x in _flat(part)]
    return [results]


#: of a workload that names its sides, and not this one
NOT_ASKED: Final = "is not asked"
#: every side, the engine first, and the module that it needs
SIDES: dict[str, tuple[Prepare, str]] = {
    "gradserve": (gradserve, "engine"),
    "torch": (torch_eager, "torch"),
    "torch.compile": (torch_compiled, "torch"),
    "jax": (jax, "jax"),
    "autograd": (autograd, "autograd"),
    "scipy": (scipy, "scipy"),
}


def installed_sides() -> list[str]:
    """The sides that can be asked here."""
    return [name for name, (_, module) in SIDES.items() if is_installed(module)]


def prepare(side: str, work: Workload, device: str = "cpu") -> Prepared:
    """This side, ready to run. Raises Unsupported where it cannot, or is not to."""
    if work.sides and side not in work.sides:
        raise Unsupported(NOT_ASKED)
    if side in work.without:
        raise Unsupported(work.without[side])
    return SIDES[side][0](work, device)
