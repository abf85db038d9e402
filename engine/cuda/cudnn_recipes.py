"""Recipes of convolutions and attention by cuDNN, and the terms of all recipes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from engine.codegen.microkernels.convolution import ConvolutionGeometry, Direction, Tensor
from engine.codegen.native.machine_code import KernelStore
from engine.cuda.autotuning import NO_CHOICES, Choices
from engine.cuda.card_recipe import CardPlace, CardRecipe, ClearPhase, CudnnPhase, Phase
from engine.cuda.cudnn_plans import CudnnLibrary, CudnnPlans, PlanRequest, packed_strides
from engine.ir.run_report import IEEE, PRECISIONS, Precision
from engine.ir.tensor_type import FLOATS, TensorType
from engine.ops.nn.attention import WIDTHS, is_half_attention

#: numbers of the tensors in the graph of a convolution: images; the kernel; and one value for each window
_WIDE, _KERNEL, _NARROW = 1, 2, 3
#: notes of engines that read operands, or add, in less precision than was asked for; transforms lose digits, too
_INEXACT: Final = ("DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "WINOGRAD", "FFT")
#: float32 in tensor cores is TF32; float16 is exact there
_NOT_IEEE: Final = ("TENSOR_CORE", *_INEXACT)
#: bytes of a number in attention, which is float16
_ITEMSIZE: Final = 2
#: numbers of the tensors in graphs of attention. Statistics are the natural logarithms of the rows' sums of
#: exponentials of scaled scores, in float32, which `attention_half_rows` keeps for the backward pass
_Q, _K, _V, _Y, _STATISTICS, _G, _BY_Q, _BY_K, _BY_V = range(1, 10)


def convolution_precision(asked: Precision) -> Precision:
    """Choose how float32 operands are read if `asked` is allowed: float32, or tf32 if that is no less exact."""
    return IEEE if PRECISIONS.index(asked) < PRECISIONS.index("tf32") else "tf32"


class CudnnConvolutions:
    """Recipes of convolutions by one card's cuDNN. Threads may share it."""

    def __init__(self, plans: CudnnPlans) -> None:
        self._plans = plans

    def recipe(
        self,
        of: ConvolutionGeometry,
        direction: Direction,
        *,
        precision: Precision,
        deterministic: bool,
        workspace: int,
        choices: Choices = NO_CHOICES,
    ) -> CardRecipe | None:
        """Make a recipe of one plan, and a memset if windows miss elements; None if cuDNN has no plan that fits.

        `precision` is what was asked for. If `deterministic`, no engine is noted to add in an order of chance.
        """
        placed = _placed(of, direction) if of.dtype in FLOATS else None
        if placed is None:
            return None
        is_ieee = of.dtype == IEEE == convolution_precision(precision)
        without = _NOT_IEEE if is_ieee else _INEXACT
        notes = (*without, "NONDETERMINISTIC") if deterministic else without
        text, state = f"{direction} {of.dtype} {placed}", partial(_graph, placed, direction, of.dtype)
        # bytes from the first element of each tensor to the end of the last one
        extents = (1 + sum((n - 1) * step for n, step in zip(*lying, strict=True)) for lying in placed[:3])
        sizes = tuple((k, of.itemsize * n) for k, n in zip((_WIDE, _KERNEL, _NARROW), extents, strict=True))
        request = PlanRequest(text, state, notes, workspace, sizes)
        plan = self._plans.find(request, choices=choices)
        if plan is None:
            return None
        phases: list[Phase] = [CudnnPhase(plan, _places(direction), CardPlace("workspace"))]
        if direction == "adjoint" and math.prod(placed.wide.shape) != math.prod(of.y.shape):
            # The result, which is dense, reaches beyond what the plan writes.
            phases.insert(0, ClearPhase(CardPlace("result"), math.prod(of.y.shape) * of.itemsize))
        return CardRecipe(tuple(phases), workspace=plan.workspace)


class _Lying(NamedTuple):
    """Extents, and strides in elements, along the axes [outer, channels, 2 or 3 spatial]."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Placed(NamedTuple):
    """A convolution in cuDNN's terms: groups by the channels of the kernel, padding before and behind the images."""

    wide: _Lying
    kernel: _Lying
    narrow: _Lying
    stride: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    dilation: tuple[int, ...]


def _placed(of: ConvolutionGeometry, direction: Direction) -> _Placed | None:
    """Put a convolution in cuDNN's terms; None if it is empty, or cuDNN has no such convolution."""
    wide, narrow = (of.y, of.x) if direction == "adjoint" else (of.x, of.y)
    axes = zip(wide.shape[2:], of.kernel.shape[2:], narrow.shape[2:], of.stride, of.padding, of.dilation, strict=True)
    within, behind = zip(*(_reached(*axis) for axis in axes), strict=True)
    seen = Tensor((*wide.shape[:2], *within), wide.steps)
    tensors = [_in_elements(tensor, of.itemsize) for tensor in (seen, of.kernel, narrow)]
    if min(*of.padding, *behind) < 0 or None in tensors:
        return None
    # cuDNN has two or three axes: a first one on which nothing moves is dropped.
    first = int(all(t.shape[2] == 1 for t in (seen, of.kernel, narrow)) and not of.padding[0])
    images, kernel, values = (
        _Lying(*(part[:2] + part[2 + first :] for part in lying)) for lying in tensors if lying is not None
    )
    numbers = (each[first:] for each in (of.stride, of.padding, behind, of.dilation))
    return _Placed(images, kernel, values, *numbers)


def _reached(extent: int, taps: int, windows: int, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """Find the extent of an axis of the images for cuDNN, and the padding behind it.

    cuDNN computes as many windows as fit. If there are fewer, the rest behind the last one is left out.
    """
    end = (windows - 1) * stride + dilation * (taps - 1) + 1 - padding
    if extent + padding - end < stride:
        return extent, padding
    return min(extent, end), max(0, end - extent)


def _in_elements(of: Tensor, itemsize: int) -> _Lying | None:
    """Count strides in elements; an axis of one entry has the stride of a dense tensor.

    None for an empty tensor, and for strides that are not positive, or no whole elements.
    """
    if min(of.shape) < 1:
        return None
    strides: list[int] = []
    dense = 1
    for extent, step in zip(reversed(of.shape), reversed(of.steps), strict=True):
        stride, rest = divmod(step, itemsize)
        if extent > 1 and (stride < 1 or rest):
            return None
        strides.insert(0, stride if extent > 1 else dense)
        dense = strides[0] * extent
    return _Lying(of.shape, tuple(strides))


def _graph(of: _Placed, direction: Direction, dtype: str, cudnn: CudnnLibrary) -> Any:
    graph = cudnn.graph(dtype)
    given = {"forward": (_WIDE, _KERNEL), "adjoint": (_NARROW, _KERNEL), "by_kernel": (_NARROW, _WIDE)}[direction]
    lying = {_WIDE: of.wide, _KERNEL: of.kernel, _NARROW: of.narrow}
    first, second = (
        graph.tensor(dim=list(lying[n].shape), stride=list(lying[n].strides), data_type=cudnn.element(dtype), uid=n)
        for n in given
    )
    placing: dict[str, Sequence[int]] = {
        "pre_padding": list(of.before),
        "post_padding": list(of.behind),
        "stride": list(of.stride),
        "dilation": list(of.dilation),
    }
    if direction == "forward":
        result = graph.conv_fprop(image=first, weight=second, **placing)
    elif direction == "adjoint":
        result = graph.conv_dgrad(loss=first, filter=second, **placing)
    else:
        result = graph.conv_wgrad(loss=first, image=second, **placing)
    (number,) = lying.keys() - set(given)
    result.set_output(True).set_data_type(cudnn.element(dtype)).set_uid(number)
    result.set_dim(list(lying[number].shape)).set_stride(list(lying[number].strides))
    return graph


def _places(direction: Direction) -> tuple[tuple[int, CardPlace], ...]:
    """Place the tensors of a graph: operands are in the order of the geometry, without the result."""
    result = CardPlace("result")
    first, second = CardPlace("operand", 0), CardPlace("operand", 1)
    if direction == "forward":
        return (_WIDE, first), (_KERNEL, second), (_NARROW, result)
    if direction == "adjoint":
        return (_NARROW, first), (_KERNEL, second), (_WIDE, result)
    return (_WIDE, first), (_NARROW, second), (_KERNEL, result)


class _Rows(NamedTuple):
    """Extents, and strides in elements, along the axes [batch, heads, rows, width]."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class AttentionShape(NamedTuple):
    """Attention in cuDNN's terms; its results are dense."""

    q: _Rows
    k: _Rows
    v: _Rows
    scale: float
    causal: bool


def attention_shape(
    q: TensorType, k: TensorType, v: TensorType, *mask: TensorType, scale: float, causal: bool
) -> AttentionShape | None:
    """Put attention in cuDNN's terms; None if cuDNN does not compute it as it lies.

    There is a key for each query: a causal query sees the key at its own position, or all there are.
    """
    if not is_half_attention(q, k, v, *mask):
        return None
    queries, keys, values = map(_lying, (q, k, v))
    if queries is None or keys is None or values is None:
        return None
    return AttentionShape(queries, keys, values, scale, causal)


def _lying(of: TensorType) -> _Rows | None:
    """View a tensor on four axes; None if cuDNN has no such layout."""
    steps = of.strides
    lead, rest = of.shape[:-2], of.shape[-2:]
    if len(lead) > 2:
        if steps != TensorType(of.shape, of.dtype).strides:
            return None
        lead = (math.prod(lead[:-1]), lead[-1])
    shape = (*[1] * (2 - len(lead)), *lead, *rest)
    strides, dense = list[int](), 1
    for extent, step in zip(reversed(shape), (*reversed(steps[-4:]), 0, 0), strict=False):
        stride = step // _ITEMSIZE if extent > 1 else dense
        if stride < 1 or (strides and stride % WIDTHS) or not (strides or stride == 1):
            return None
        strides.insert(0, stride)
        dense = stride * extent
    return _Rows(shape, tuple(strides))


class CudnnAttention:
    """Recipes of attention in float16 by one card's cuDNN. Threads may share it.

    A plan takes seconds, as a kernel is compiled: without `may_plan`, there is a recipe only if the plan is there
    already.
    """

    def __init__(self, plans: CudnnPlans) -> None:
        self._plans = plans

    def rows(
        self, of: AttentionShape, *, deterministic: bool, workspace: int, may_plan: bool = True
    ) -> CardRecipe | None:
        """Make the recipe of y and the logarithms from q, k and v, as `attention_half_rows` has them."""
        request = PlanRequest(f"attention {of}", partial(_rows_graph, of), _notes(deterministic), workspace)
        return self._recipe(request, (_Q, _K, _V), (_Y, _STATISTICS), may_plan=may_plan)

    def gradients(
        self, of: AttentionShape, *, deterministic: bool, workspace: int, may_plan: bool = True
    ) -> CardRecipe | None:
        """Make the recipe of dq, dk and dv, as `attention_half_gradients` has them; operands from y on are dense."""
        state = partial(_gradients_graph, of, deterministic)
        request = PlanRequest(f"attention_gradients {of}", state, _notes(deterministic), workspace)
        return self._recipe(request, (_Q, _K, _V, _Y, _STATISTICS, _G), (_BY_Q, _BY_K, _BY_V), may_plan=may_plan)

    def _recipe(
        self, request: PlanRequest, operands: Sequence[int], results: Sequence[int], *, may_plan: bool
    ) -> CardRecipe | None:
        plan = self._plans.find(request, may_plan=may_plan)
        if plan is None:
            return None
        tensors = [(number, CardPlace("operand", k)) for k, number in enumerate(operands)]
        tensors += [(number, CardPlace("result", k)) for k, number in enumerate(results)]
        return CardRecipe((CudnnPhase(plan, tuple(tensors), CardPlace("workspace")),), workspace=plan.workspace)


def _notes(deterministic: bool) -> tuple[str, ...]:
    return ("NONDETERMINISTIC",) if deterministic else ()


class _Stated:
    """A graph in float16, and its tensors."""

    def __init__(self, cudnn: CudnnLibrary) -> None:
        self.graph, self._cudnn = cudnn.graph("float16"), cudnn

    def given(self, number: int, of: _Rows, dtype: str = "float16") -> Any:
        element = self._cudnn.element(dtype)
        return self.graph.tensor(dim=list(of.shape), stride=list(of.strides), data_type=element, uid=number)

    def made(self, tensor: Any, number: int, shape: Sequence[int], dtype: str = "float16") -> None:
        tensor.set_output(True).set_data_type(self._cudnn.element(dtype)).set_uid(number)
        tensor.set_dim(list(shape)).set_stride(packed_strides(shape))


def _result_shape(of: AttentionShape) -> tuple[int, ...]:
    return (*of.q.shape[:3], of.v.shape[3])


def _rows_graph(of: AttentionShape, cudnn: CudnnLibrary) -> Any:
    to = _Stated(cudnn)
    q, k, v = (to.given(number, rows) for number, rows in zip((_Q, _K, _V), of[:3], strict=True))
    y, statistics = to.graph.sdpa(q=q, k=k, v=v, attn_scale=of.scale, use_causal_mask=of.causal, generate_stats=True)
    to.made(y, _Y, _result_shape(of))
    to.made(statistics, _STATISTICS, (*of.q.shape[:3], 1), "float32")
    return to.graph


def _gradients_graph(of: AttentionShape, deterministic: bool, cudnn: CudnnLibrary) -> Any:
    to = _Stated(cudnn)
    q, k, v = (to.given(number, rows) for number, rows in zip((_Q, _K, _V), of[:3], strict=True))
    shapes = (_result_shape(of), (*of.q.shape[:3], 1))
    dense, rows = (_Rows(shape, tuple(packed_strides(shape))) for shape in shapes)
    found = to.graph.sdpa_backward(
        q=q,
        k=k,
        v=v,
        o=to.given(_Y, dense),
        dO=to.given(_G, dense),
        stats=to.given(_STATISTICS, rows, "float32"),
        attn_scale=of.scale,
        use_causal_mask=of.causal,
        use_deterministic_algorithm=deterministic,
    )
    for tensor, number, rows in zip(found, (_BY_Q, _BY_K, _BY_V), of[:3], strict=True):
        to.made(tensor, number, rows.shape)
    return to.graph


class CudnnRecipes:
    """Recipes by one card's cuDNN. Its plans are kept in `store`."""

    def __init__(self, library: CudnnLibrary, store: KernelStore | None = None) -> None:
        plans = CudnnPlans(library, store)
        self.library, self.convolutions, self.attention = library, CudnnConvolutions(plans), CudnnAttention(plans)


class CardTerms(NamedTuple):
    """Terms of a recipe: how float32 operands may be read, and its bytes of workspace.

    If `deterministic`, nothing is added in an order of chance. If it `may_wait`, plans that take seconds are built.
    `choices` are the algorithms of libraries that were chosen by timing.
    """

    precision: Precision = IEEE
    workspace: int = 0
    deterministic: bool = True
    cudnn: CudnnRecipes | None = None
    may_wait: bool = True
    choices: Choices = NO_CHOICES
