"""Recipes of convolutions and attention with cuDNN, and the terms of all recipes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from engine.codegen.microkernels.convolution import ConvolutionGeometry, Direction, TensorLayout
from engine.codegen.native.machine_code import KernelStore
from engine.cuda.autotuning import NO_CHOICES, Choices
from engine.cuda.card_recipe import CardPlace, CardRecipe, ClearPhase, CudnnPhase, Phase
from engine.cuda.cudnn_plans import CudnnLibrary, CudnnPlans, PlanRequest, packed_strides
from engine.ir.run_report import IEEE, PRECISIONS, Precision
from engine.ir.tensor_type import FLOATS, TensorType
from engine.ops.nn.attention import WIDTHS, is_half_attention

#: tensor numbers in the graph of a convolution: images, kernel, and one value per window
_WIDE, _KERNEL, _NARROW = 1, 2, 3
#: notes of engines that reduce the precision of operands or sums; Winograd and FFT lose digits, too
_INEXACT: Final = ("DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "WINOGRAD", "FFT")
#: additional note for float32, which tensor cores read as TF32; float16 is exact there
_NOT_IEEE: Final = ("TENSOR_CORE", *_INEXACT)
#: bytes of an element in attention, which is float16
_ITEMSIZE: Final = 2
#: tensor numbers in graphs of attention. The statistics, in float32, are the logarithm of each row's sum of
#: exponentials of scaled scores, which `attention_half_rows` saves for the backward pass
_Q, _K, _V, _Y, _STATISTICS, _G, _BY_Q, _BY_K, _BY_V = range(1, 10)


def convolution_precision(requested: Precision) -> Precision:
    """Return how to read float32 operands if `requested` is allowed: as float32, or as tf32 if no less exact."""
    return IEEE if PRECISIONS.index(requested) < PRECISIONS.index("tf32") else "tf32"


class CudnnConvolutions:
    """Recipes of convolutions with cuDNN on one GPU. Thread-safe."""

    def __init__(self, plans: CudnnPlans) -> None:
        self._plans = plans

    def recipe(
        self,
        geometry: ConvolutionGeometry,
        direction: Direction,
        *,
        precision: Precision,
        deterministic: bool,
        workspace: int,
        choices: Choices = NO_CHOICES,
    ) -> CardRecipe | None:
        """Build a recipe of one plan, and a memset if windows miss elements; None if cuDNN has no plan that fits.

        `precision` is the requested one. If `deterministic`, engines noted as nondeterministic are excluded.
        """
        convolution = _cudnn_convolution(geometry, direction) if geometry.dtype in FLOATS else None
        if convolution is None:
            return None
        is_ieee = geometry.dtype == IEEE == convolution_precision(precision)
        excluded_notes = _NOT_IEEE if is_ieee else _INEXACT
        notes = (*excluded_notes, "NONDETERMINISTIC") if deterministic else excluded_notes
        text, build_graph = (
            f"{direction} {geometry.dtype} {convolution}",
            partial(_graph, convolution, direction, geometry.dtype),
        )
        # bytes from the first element of each tensor to the end of the last one
        extents = (1 + sum((n - 1) * step for n, step in zip(*layout, strict=True)) for layout in convolution[:3])
        sizes = tuple((k, geometry.itemsize * n) for k, n in zip((_WIDE, _KERNEL, _NARROW), extents, strict=True))
        request = PlanRequest(text, build_graph, notes, workspace, sizes)
        plan = self._plans.find(request, choices=choices)
        if plan is None:
            return None
        phases: list[Phase] = [CudnnPhase(plan, _tensor_places(direction), CardPlace("workspace"))]
        if direction == "adjoint" and math.prod(convolution.wide.shape) != math.prod(geometry.y.shape):
            # The plan does not write the elements of the dense result that no window reaches.
            phases.insert(0, ClearPhase(CardPlace("result"), math.prod(geometry.y.shape) * geometry.itemsize))
        return CardRecipe(tuple(phases), workspace=plan.workspace)


class _Layout(NamedTuple):
    """Extents, and strides in elements, along the axes [outer, channels, 2 or 3 spatial]."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _CudnnConvolution(NamedTuple):
    """Convolution in cuDNN's terms: the kernel's channels imply the groups, and padding may differ before and after."""

    wide: _Layout
    kernel: _Layout
    narrow: _Layout
    stride: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    dilation: tuple[int, ...]


def _cudnn_convolution(geometry: ConvolutionGeometry, direction: Direction) -> _CudnnConvolution | None:
    """Express a convolution in cuDNN's terms; None if it is empty, or if cuDNN does not support it."""
    wide, narrow = (geometry.y, geometry.x) if direction == "adjoint" else (geometry.x, geometry.y)
    axes = zip(
        wide.shape[2:],
        geometry.kernel.shape[2:],
        narrow.shape[2:],
        geometry.stride,
        geometry.padding,
        geometry.dilation,
        strict=True,
    )
    within, behind = zip(*(_trimmed_axis(*axis) for axis in axes), strict=True)
    images_read = TensorLayout((*wide.shape[:2], *within), wide.steps)
    tensors = [_in_elements(tensor, geometry.itemsize) for tensor in (images_read, geometry.kernel, narrow)]
    if min(*geometry.padding, *behind) < 0 or None in tensors:
        return None
    # cuDNN has two or three spatial axes: drop the first of three if it has extent 1 everywhere.
    first = int(all(t.shape[2] == 1 for t in (images_read, geometry.kernel, narrow)) and not geometry.padding[0])
    images, kernel, values = (
        _Layout(*(sizes[:2] + sizes[2 + first :] for sizes in layout)) for layout in tensors if layout is not None
    )
    numbers = (each[first:] for each in (geometry.stride, geometry.padding, behind, geometry.dilation))
    return _CudnnConvolution(images, kernel, values, *numbers)


def _trimmed_axis(extent: int, taps: int, windows: int, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """Return the extent of an axis of the images for cuDNN, and the padding after it.

    cuDNN computes as many windows as fit. If there are fewer, the elements after the last window are left out.
    """
    end = (windows - 1) * stride + dilation * (taps - 1) + 1 - padding
    if extent + padding - end < stride:
        return extent, padding
    return min(extent, end), max(0, end - extent)


def _in_elements(tensor: TensorLayout, itemsize: int) -> _Layout | None:
    """Return strides in elements; an axis of extent 1 gets the stride of a dense tensor.

    Return None for an empty tensor, and for strides that are not positive or not whole elements.
    """
    if min(tensor.shape) < 1:
        return None
    strides: list[int] = []
    dense = 1
    for extent, step in zip(reversed(tensor.shape), reversed(tensor.steps), strict=True):
        stride, rest = divmod(step, itemsize)
        if extent > 1 and (stride < 1 or rest):
            return None
        strides.insert(0, stride if extent > 1 else dense)
        dense = strides[0] * extent
    return _Layout(tensor.shape, tuple(strides))


def _graph(convolution: _CudnnConvolution, direction: Direction, dtype: str, cudnn: CudnnLibrary) -> Any:
    graph = cudnn.graph(dtype)
    operands = {"forward": (_WIDE, _KERNEL), "adjoint": (_NARROW, _KERNEL), "by_kernel": (_NARROW, _WIDE)}[direction]
    layouts = {_WIDE: convolution.wide, _KERNEL: convolution.kernel, _NARROW: convolution.narrow}
    first, second = (
        graph.tensor(dim=list(layouts[n].shape), stride=list(layouts[n].strides), data_type=cudnn.element(dtype), uid=n)
        for n in operands
    )
    placing: dict[str, Sequence[int]] = {
        "pre_padding": list(convolution.before),
        "post_padding": list(convolution.behind),
        "stride": list(convolution.stride),
        "dilation": list(convolution.dilation),
    }
    if direction == "forward":
        result = graph.conv_fprop(image=first, weight=second, **placing)
    elif direction == "adjoint":
        result = graph.conv_dgrad(loss=first, filter=second, **placing)
    else:
        result = graph.conv_wgrad(loss=first, image=second, **placing)
    (number,) = layouts.keys() - set(operands)
    result.set_output(True).set_data_type(cudnn.element(dtype)).set_uid(number)
    result.set_dim(list(layouts[number].shape)).set_stride(list(layouts[number].strides))
    return graph


def _tensor_places(direction: Direction) -> tuple[tuple[int, CardPlace], ...]:
    """Return the places of a graph's tensors: operands are in the order of the geometry, without the result."""
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
    """Express attention in cuDNN's terms; None if cuDNN does not support it with these layouts.

    Every query sees at least one key: without `causal` all keys, with it the first one at least.
    """
    if not is_half_attention(q, k, v, *mask):
        return None
    queries, keys, values = map(_four_axes, (q, k, v))
    if queries is None or keys is None or values is None:
        return None
    return AttentionShape(queries, keys, values, scale, causal)


def _four_axes(type: TensorType) -> _Rows | None:
    """View a tensor on four axes; None if cuDNN does not support its layout."""
    steps = type.strides
    lead, rest = type.shape[:-2], type.shape[-2:]
    if len(lead) > 2:
        if steps != TensorType(type.shape, type.dtype).strides:
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
    """Recipes of float16 attention with cuDNN on one GPU. Thread-safe.

    Building a plan takes seconds, since it compiles a kernel: without `may_plan`, there is a recipe only if the plan is
    cached.
    """

    def __init__(self, plans: CudnnPlans) -> None:
        self._plans = plans

    def rows(
        self, shape: AttentionShape, *, deterministic: bool, workspace: int, may_plan: bool = True
    ) -> CardRecipe | None:
        """Build the recipe of y and the statistics from q, k and v, as in `attention_half_rows`."""
        request = PlanRequest(f"attention {shape}", partial(_rows_graph, shape), _notes(deterministic), workspace)
        return self._recipe(request, (_Q, _K, _V), (_Y, _STATISTICS), may_plan=may_plan)

    def gradients(
        self, shape: AttentionShape, *, deterministic: bool, workspace: int, may_plan: bool = True
    ) -> CardRecipe | None:
        """Build the recipe of dq, dk and dv, as in `attention_half_gradients`; operands from y on are dense."""
        build_graph = partial(_gradients_graph, shape, deterministic)
        request = PlanRequest(f"attention_gradients {shape}", build_graph, _notes(deterministic), workspace)
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


class _GraphBuilder:
    """Builder of a float16 graph."""

    def __init__(self, cudnn: CudnnLibrary) -> None:
        self.graph, self._cudnn = cudnn.graph("float16"), cudnn

    def operand(self, number: int, rows: _Rows, dtype: str = "float16") -> Any:
        element = self._cudnn.element(dtype)
        return self.graph.tensor(dim=list(rows.shape), stride=list(rows.strides), data_type=element, uid=number)

    def result(self, tensor: Any, number: int, shape: Sequence[int], dtype: str = "float16") -> None:
        tensor.set_output(True).set_data_type(self._cudnn.element(dtype)).set_uid(number)
        tensor.set_dim(list(shape)).set_stride(packed_strides(shape))


def _result_shape(shape: AttentionShape) -> tuple[int, ...]:
    return (*shape.q.shape[:3], shape.v.shape[3])


def _rows_graph(shape: AttentionShape, cudnn: CudnnLibrary) -> Any:
    builder = _GraphBuilder(cudnn)
    q, k, v = (builder.operand(number, rows) for number, rows in zip((_Q, _K, _V), shape[:3], strict=True))
    y, statistics = builder.graph.sdpa(
        q=q, k=k, v=v, attn_scale=shape.scale, use_causal_mask=shape.causal, generate_stats=True
    )
    builder.result(y, _Y, _result_shape(shape))
    builder.result(statistics, _STATISTICS, (*shape.q.shape[:3], 1), "float32")
    return builder.graph


def _gradients_graph(attention: AttentionShape, deterministic: bool, cudnn: CudnnLibrary) -> Any:
    builder = _GraphBuilder(cudnn)
    q, k, v = (builder.operand(number, rows) for number, rows in zip((_Q, _K, _V), attention[:3], strict=True))
    shapes = (_result_shape(attention), (*attention.q.shape[:3], 1))
    dense, rows = (_Rows(shape, tuple(packed_strides(shape))) for shape in shapes)
    gradients = builder.graph.sdpa_backward(
        q=q,
        k=k,
        v=v,
        o=builder.operand(_Y, dense),
        dO=builder.operand(_G, dense),
        stats=builder.operand(_STATISTICS, rows, "float32"),
        attn_scale=attention.scale,
        use_causal_mask=attention.causal,
        use_deterministic_algorithm=deterministic,
    )
    for tensor, number, rows in zip(gradients, (_BY_Q, _BY_K, _BY_V), attention[:3], strict=True):
        builder.result(tensor, number, rows.shape)
    return builder.graph


class CudnnRecipes:
    """Recipes with cuDNN on one GPU. Plans are stored in `store`."""

    def __init__(self, library: CudnnLibrary, store: KernelStore | None = None) -> None:
        plans = CudnnPlans(library, store)
        self.library, self.convolutions, self.attention = library, CudnnConvolutions(plans), CudnnAttention(plans)


class CardTerms(NamedTuple):
    """Terms of a recipe: how float32 operands may be read, and the bytes of its workspace.

    If `deterministic`, sums have a fixed order. If `may_wait`, plans that take seconds to build are allowed. `choices`
    are the library algorithms chosen by timing.
    """

    precision: Precision = IEEE
    workspace: int = 0
    deterministic: bool = True
    cudnn: CudnnRecipes | None = None
    may_wait: bool = True
    choices: Choices = NO_CHOICES
