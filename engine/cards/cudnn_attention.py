"""Attention in half by cuDNN: recipes of the rows and of the way back, where nothing but later keys is hidden.

Its statistics are the natural logarithm of each row's sum of exponentials of scaled scores, in float32, which is what
`attention_half_rows` keeps for the way back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from engine.cards.card_recipe import CardPlace, CardRecipe, CudnnPhase
from engine.cards.cudnn_library import CudnnLibrary
from engine.cards.cudnn_plans import CudnnPlan, CudnnPlans, PlanRequest, packed_strides
from engine.graph.tensor_type import TensorType
from engine.oplib.attention_half import WIDTHS, is_half_attention

_ITEMSIZE: Final = 2  # bytes
#: the numbers of the tensors in graphs
_Q, _K, _V, _Y, _STATISTICS, _G, _BY_Q, _BY_K, _BY_V = range(1, 10)


class _Rows(NamedTuple):
    """Extents and elements to step along the axes [batch, heads, rows, width]."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class AttentionShape(NamedTuple):
    """Attention as cuDNN is asked for it; what it writes is dense."""

    q: _Rows
    k: _Rows
    v: _Rows
    scale: float
    causal: bool


def attention_shape(
    q: TensorType, k: TensorType, v: TensorType, *mask: TensorType, scale: float, causal: bool
) -> AttentionShape | None:
    """The shape of attention that lies so; None where cuDNN computes none such.

    There is a key for each query: a causal one sees the key at its own position, or all there are.
    """
    if not is_half_attention(q, k, v, *mask):
        return None
    queries, keys, values = map(_lying, (q, k, v))
    if queries is None or keys is None or values is None:
        return None
    return AttentionShape(queries, keys, values, scale, causal)


def _lying(of: TensorType) -> _Rows | None:
    """On four axes. None for what cuDNN has no word for."""
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
    """Recipes of attention by one card's cuDNN. Threads may share it.

    A plan takes seconds, for a kernel is compiled: where that is not to be waited for, `may_plan` is false, and there
    is a recipe where the plan is there already.
    """

    def __init__(self, plans: CudnnPlans) -> None:
        self._plans = plans

    def rows(
        self, of: AttentionShape, *, deterministic: bool, workspace: int, may_plan: bool = True
    ) -> CardRecipe | None:
        """y and the logarithms of q, k and v, as `attention_half_rows` has them."""
        plan = self._found("attention", of, partial(_rows_graph, of), deterministic, workspace, may_plan)
        if plan is None:
            return None
        tensors = (*_operands(_Q, _K, _V), (_Y, CardPlace("result")), (_STATISTICS, CardPlace("result", 1)))
        return CardRecipe((CudnnPhase(plan, tensors, CardPlace("workspace")),), workspace=plan.workspace)

    def gradients(
        self, of: AttentionShape, *, deterministic: bool, workspace: int, may_plan: bool = True
    ) -> CardRecipe | None:
        """dq, dk and dv, as `attention_half_gradients` has them; its operands lie densely from y on."""
        state = partial(_gradients_graph, of, deterministic)
        plan = self._found("attention_gradients", of, state, deterministic, workspace, may_plan)
        if plan is None:
            return None
        results = ((number, CardPlace("result", k)) for k, number in enumerate((_BY_Q, _BY_K, _BY_V)))
        tensors = (*_operands(_Q, _K, _V, _Y, _STATISTICS, _G), *results)
        return CardRecipe((CudnnPhase(plan, tensors, CardPlace("workspace")),), workspace=plan.workspace)

    def _found(
        self, what: str, of: AttentionShape, state: Any, deterministic: bool, workspace: int, may_plan: bool
    ) -> CudnnPlan | None:
        notes = ("NONDETERMINISTIC",) if deterministic else ()
        return self._plans.find(PlanRequest(f"{what} {of}", state, notes, workspace), may_plan=may_plan)


def _operands(*numbers: int) -> list[tuple[int, CardPlace]]:
    return [(number, CardPlace("operand", k)) for k, number in enumerate(numbers)]


class _Stated:
    """A graph, and tensors of it."""

    def __init__(self, cudnn: CudnnLibrary) -> None:
        self.graph, self._cudnn = cudnn.graph("float16"), cudnn

    def given(self, number: int, of: _Rows, dtype: str = "float16") -> Any:
        """A tensor that is read."""
        element = self._cudnn.element(dtype)
        return self.graph.tensor(dim=list(of.shape), stride=list(of.strides), data_type=element, uid=number)

    def made(self, tensor: Any, number: int, shape: Sequence[int], dtype: str = "float16") -> None:
        """A tensor that is written, densely."""
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
