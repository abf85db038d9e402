"""A stand-in for the module `cudnn`: it records the requested graphs, and has the engines that a test gives it.

It executes convolutions in host memory, element by element.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np

NOTES = (
    "TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT", "NONDETERMINISTIC", "WINOGRAD",
)  # fmt: skip


class NotSupported(Exception):
    """The exception of cuDNN's frontend, which is no RuntimeError."""


class Engine(NamedTuple):
    """An engine that a heuristic proposes."""

    name: str
    notes: tuple[str, ...] = ()
    workspace: int = 0
    builds: bool = True
    milliseconds: float = 1.0


class Tensor:
    """A tensor of a graph."""

    def __init__(self, dim: Sequence[int] = (), stride: Sequence[int] = (), data_type: str = "", uid: int = -1) -> None:
        self.dim, self.stride, self.data_type, self.uid, self.is_output = (
            tuple(dim),
            tuple(stride),
            data_type,
            uid,
            False,
        )

    def set_output(self, is_output: bool) -> Self:
        self.is_output = is_output
        return self

    def set_data_type(self, data_type: str) -> Self:
        self.data_type = data_type
        return self

    def set_uid(self, uid: int) -> Self:
        self.uid = uid
        return self

    def set_dim(self, dim: list[int]) -> Self:
        self.dim = tuple(dim)
        return self

    def set_stride(self, stride: list[int]) -> Self:
        self.stride = tuple(stride)
        return self


class Graph:
    """A graph: one op, and the engines of the requested heuristic."""

    def __init__(self, module: Cudnn, given: dict[str, Any]) -> None:
        self.module, self.given = module, given
        self.tensors: dict[int, Tensor] = {}
        self.op, self.numbers, self.operands = "", dict[str, Any](), dict[str, Tensor]()
        self.results: tuple[Tensor, ...] = ()
        self.state, self.mode = "stated", ""
        self.engines: list[Engine] = []
        self.without: list[str] = []
        self.built: Engine | None = None

    def tensor(self, *, dim: list[int], stride: list[int], data_type: str, uid: int) -> Tensor:
        assert uid not in self.tensors
        self.tensors[uid] = Tensor(dim, stride, data_type, uid)
        return self.tensors[uid]

    def conv_fprop(self, *, image: Tensor, weight: Tensor, **numbers: Any) -> Tensor:
        return self._one("conv_fprop", {"wide": image, "kernel": weight}, numbers)[0]

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, **numbers: Any) -> Tensor:
        return self._one("conv_dgrad", {"narrow": loss, "kernel": filter}, numbers)[0]

    def conv_wgrad(self, *, loss: Tensor, image: Tensor, **numbers: Any) -> Tensor:
        return self._one("conv_wgrad", {"narrow": loss, "wide": image}, numbers)[0]

    def sdpa(self, *, q: Tensor, k: Tensor, v: Tensor, **numbers: Any) -> Any:
        return self._one("sdpa", {"q": q, "k": k, "v": v}, numbers, 2)

    def sdpa_backward(
        self,
        *,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        o: Tensor,
        dO: Tensor,  # noqa: N803 - cuDNN's
        stats: Tensor,
        **numbers: Any,
    ) -> Any:
        return self._one("sdpa_backward", {"q": q, "k": k, "v": v, "o": o, "dO": dO, "stats": stats}, numbers, 3)

    def _one(self, op: str, operands: dict[str, Tensor], numbers: dict[str, Any], results: int = 1) -> Any:
        self.op, self.operands, self.numbers = op, operands, numbers
        self.results = tuple(Tensor() for _ in range(results))
        return self.results

    def _step(self, before: str, after: str) -> None:
        if self.state != before:
            raise RuntimeError(f"{after} after {before}")
        if self.module.fails == after:
            raise NotSupported(f"{after} does\nnot work")
        self.state = after

    def validate(self) -> None:
        for tensor in (*self.tensors.values(), *self.results):
            assert tensor.dim
            assert min(tensor.stride) > 0
            assert tensor.uid > 0
        assert all(result.is_output for result in self.results)
        self._step("stated", "validated")

    def build_operation_graph(self) -> None:
        self._step("validated", "graph")

    def create_execution_plans(self, modes: list[str]) -> None:
        self._step("graph", "planned")
        (self.mode,) = modes
        self.module.asked.append(self)
        if self.module.engines.get(self.mode) is None:
            raise NotSupported(f"heuristic {self.mode} knows nothing")
        self.engines = list(self.module.engines[self.mode])

    def deselect_numeric_notes(self, notes: list[str]) -> None:
        assert self.state == "planned"
        self.without = notes

    def get_execution_plan_count(self) -> int:
        return len(self.engines)

    def build_plan_at_index(self, index: int) -> None:
        engine = self.engines[index]
        if not engine.builds or {*engine.notes} & {*self.without}:
            raise NotSupported(f"{engine.name} is not supported")
        self.built = engine

    def get_workspace_size_plan_at_index(self, index: int) -> int:
        return self.engines[index].workspace

    def get_workspace_size(self) -> int:
        assert self.built
        return self.built.workspace

    def serialize(self) -> list[int]:
        assert self.built
        tensors = {each.uid: (each.dim, each.stride, each.data_type) for each in self.results}
        tensors |= {each.uid: (each.dim, each.stride, each.data_type) for each in self.tensors.values()}
        operands = {name: each.uid for name, each in self.operands.items()}
        text = json.dumps([self.op, tensors, operands, [each.uid for each in self.results], self.numbers, self.built])
        return list(text.encode())

    def deserialize(self, handle: str, code: list[int]) -> None:
        assert handle == self.given["handle"]
        assert isinstance(code, list)
        try:
            self.op, tensors, operands, results, self.numbers, built = json.loads(bytes(code))
        except ValueError as error:
            raise RuntimeError("this is no plan") from error
        rebuilt = {int(uid): Tensor(*fields, int(uid)) for uid, fields in tensors.items()}
        self.operands = {name: rebuilt[uid] for name, uid in operands.items()}
        self.results = tuple(rebuilt[uid] for uid in results)
        self.built = Engine(*built)

    def execute(self, addresses: dict[int, int], workspace: int, handle: str) -> None:
        stream = self.module.streams[handle]
        self.module.launched.append((self, stream, dict(addresses), workspace))
        if self.module.computes:
            assert self.built
            self.module.launch(stream, self.built.milliseconds, lambda: self._compute(addresses))

    def _compute(self, addresses: dict[int, int]) -> None:
        if self.op.startswith("sdpa"):
            self._attend(addresses)
            return
        role = {"conv_fprop": "narrow", "conv_dgrad": "wide", "conv_wgrad": "kernel"}[self.op]
        tensors = {**self.operands, role: self.results[0]}
        arrays = {name: _array(addresses[tensor.uid], tensor) for name, tensor in tensors.items()}
        arrays[role][...] = 0
        wide, kernel, narrow = arrays["wide"], arrays["kernel"], arrays["narrow"]
        for w, k, n in _meetings(wide.shape, kernel.shape, narrow.shape, self.numbers):
            given = {"wide": wide[w], "kernel": kernel[k], "narrow": narrow[n]}
            place = {"wide": w, "kernel": k, "narrow": n}[role]
            arrays[role][place] += math.prod(value for name, value in given.items() if name != role)

    def _attend(self, addresses: dict[int, int]) -> None:
        """Compute attention in float64 from float16 operands."""
        given = {name: _array(addresses[t.uid], t).astype("float64") for name, t in self.operands.items()}
        results = [_array(addresses[t.uid], t) for t in self.results]
        q, k, v, scale = given["q"], given["k"], given["v"], self.numbers["attn_scale"]
        scores = scale * q @ k.swapaxes(-1, -2)
        if self.numbers["use_causal_mask"]:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        if self.op == "sdpa":
            sums = np.exp(scores).sum(-1, keepdims=True)
            results[0][...], results[1][...] = np.exp(scores) / sums @ v, np.log(sums)
            return
        p, g = np.exp(scores - given["stats"]), given["dO"]
        ds = p * (g @ v.swapaxes(-1, -2) - (g * given["o"]).sum(-1, keepdims=True))
        results[0][...], results[1][...] = scale * ds @ k, scale * ds.swapaxes(-1, -2) @ q
        results[2][...] = p.swapaxes(-1, -2) @ g


def _array(address: int, tensor: Tensor) -> Any:
    """The memory at an address as an array."""
    dtype = {"HALF": "float16", "FLOAT": "float32", "DOUBLE": "float64"}[tensor.data_type]
    itemsize = np.dtype(dtype).itemsize
    strides = [itemsize * stride for stride in tensor.stride]
    interface = {"version": 3, "shape": tensor.dim, "typestr": f"<f{itemsize}", "data": (address, False)}
    return np.asarray(SimpleNamespace(__array_interface__={**interface, "strides": tuple(strides)}))


def _meetings(
    wide: tuple[int, ...], kernel: tuple[int, ...], narrow: tuple[int, ...], numbers: dict[str, Any]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """The indices of elements that are multiplied. Asserts that the number of windows is the one that cuDNN expects."""
    placing = list(zip(*(numbers[name] for name in ("stride", "pre_padding", "post_padding", "dilation")), strict=True))
    for extent, taps, windows, (s, before, behind, d) in zip(wide[2:], kernel[2:], narrow[2:], placing, strict=True):
        assert windows == (extent + before + behind - d * (taps - 1) - 1) // s + 1
    groups, features = wide[1] // kernel[1], kernel[0]
    for o, c in product(range(features), range(kernel[1])):
        channel = o // (features // groups) * kernel[1] + c
        for n, *indices in product(range(wide[0]), *map(range, narrow[2:]), *map(range, kernel[2:])):
            positions, taps = indices[: len(placing)], indices[len(placing) :]
            coords = [p * s + t * d - b for p, t, (s, b, _, d) in zip(positions, taps, placing, strict=True)]
            if all(0 <= place < extent for place, extent in zip(coords, wide[2:], strict=True)):
                yield (n, channel, *coords), (o, c, *taps), (n, o, *positions)


class Cudnn:
    """The module. `engines` has those of each heuristic, in order; `fails` is the step that raises, if any."""

    __version__ = "1.28.0"
    cudnnGraphNotSupportedError = NotSupported  # noqa: N815 - cuDNN's

    def __init__(self, *, version: int = 92801, computes: bool = False, **engines: Sequence[Engine]) -> None:
        self.data_type = SimpleNamespace(HALF="HALF", FLOAT="FLOAT", DOUBLE="DOUBLE")
        self.heur_mode = SimpleNamespace(A="A", B="B", FALLBACK="FALLBACK")
        self.numerical_note = SimpleNamespace(**{note: note for note in NOTES})
        self.engines, self.computes, self.version = engines, computes, version
        self.fails = ""
        #: does the work launched on a stream, given the stream, its milliseconds and the work
        self.launch: Callable[[int, float, Callable[[], None]], object] = lambda *arguments: arguments[2]()
        self.asked: list[Graph] = []
        self.launched: list[tuple[Graph, int, dict[int, int], int]] = []
        self.streams: dict[str, int] = {}
        self.streams_set = 0

    def backend_version(self) -> int:
        return self.version

    def pygraph(self, **given: Any) -> Graph:
        return Graph(self, given)

    def create_handle(self) -> str:
        self.streams[f"handle {len(self.streams)}"] = 0
        return [*self.streams][-1]

    def set_stream(self, *, handle: str, stream: int) -> None:
        self.streams[handle] = stream
        self.streams_set += 1
