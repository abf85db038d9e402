"""Programs for every rule: functions and their arguments, by the op's name in the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.nn import functional as F

from clients.python.tests.importers.torch_made import normal

Case = tuple[Callable[..., Any], Sequence[Any]]
X = normal(3, 4)
Y = normal(3, 4, seed=1)
POSITIVE = X.abs() + 0.3
UNIT = torch.sigmoid(X) * 0.9 + 0.05
WHOLE = torch.tensor([[3, -7, 2, 9], [-4, 5, 1, -2], [8, 6, -3, 7]])
OTHER = torch.tensor([[2, 2, -3, 4], [3, -2, 5, 3], [-3, 4, 2, -5]])
PLAIN = torch.tensor([[0.0, 1.0, 0.5, 1.0]], dtype=torch.float64)
ROWS = torch.tensor([2, 0, 2, 1])
MASK = X > 0.2
IMAGE = normal(2, 3, 6, 7)
SIGNAL = normal(2, 3, 9)
VOLUME = normal(2, 2, 4, 5, 4)
TIES = torch.tensor([[1.0, 2.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0], [-1.0, -2.0, 0.0, 0.0]], dtype=torch.float64)
EDGES = torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 0.5, 25.0, -4.0], dtype=torch.float64)
BORDERS = torch.tensor([1.0, -1.0, 0.0, -0.0, torch.inf, 6.3, torch.nan, 0.9, -0.3, 2.0], dtype=torch.float64)
SQUARE = normal(2, 3, 3) + 3 * torch.eye(3, dtype=torch.float64)
aten = torch.ops.aten


def _each(names: str, *args: Any) -> dict[str, list[Case]]:
    return {name: [(getattr(torch, name), args)] for name in names.split()}


def _mse(**options: Any) -> Callable[..., Any]:
    return lambda a, b: F.mse_loss(a, b, **options)


def _grid(**options: Any) -> Callable[..., Any]:
    return lambda x, grid: F.grid_sample(x, grid, **options)


GRID = normal(2, 4, 5, 2, seed=5) * 1.4


def _projected(x: torch.Tensor) -> Any:
    """Results that do not depend on the phases of eigenvectors."""
    w, v = torch.linalg.eigh(x + x.mH)
    return w, (v * w.tanh().unsqueeze(-2)) @ v.mH


def _eigenvalues(x: torch.Tensor) -> Any:
    return torch.linalg.eigvalsh(x + x.mH)


def _without_phases(x: torch.Tensor) -> Any:
    """Results that do not depend on the phases of singular vectors."""
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return s, (u * s.tanh().unsqueeze(-2)) @ vh


REAL_CASES: Final[dict[str, list[Case]]] = {
    **_each("acos asin atan atanh erfinv", UNIT),
    **_each("acosh", POSITIVE + 1),
    **_each("asinh cos cosh digamma erf erfc exp expm1 lgamma sigmoid sin sinh tan tanh neg abs sign", POSITIVE - 0.4),
    **_each("log log1p log2 log10 reciprocal rsqrt sqrt", POSITIVE),
    **_each("ceil floor round trunc", 3 * X),
    **_each("isnan isinf", torch.tensor([1.0, torch.inf, -torch.inf, torch.nan])),
    **_each("logical_and logical_or logical_xor", WHOLE > 1, OTHER > 1),
    **_each("maximum minimum", TIES, TIES.flip(1)),
    **_each("atan2 logaddexp", X, Y),
    **_each("amax amin", TIES, 1),
    **_each("argmax argmin", TIES, 1),
    "_to_copy": [(lambda x: x.float() * 2, [X]), (lambda x: x.to(torch.int32), [3 * X])],
    "relu": [(torch.relu, [TIES])],
    "special_log_ndtr": [(torch.special.log_ndtr, [3 * X])],
    "sinc": [(torch.sinc, [EDGES / 2])],
    "i0": [(torch.special.i0, [3 * X])],
    "special_i0e": [(torch.special.i0e, [3 * X])],
    "special_i1": [(torch.special.i1, [3 * X])],
    "special_i1e": [(torch.special.i1e, [3 * X])],
    # PyTorch has no gradient with respect to the first operand of these
    "igamma": [(lambda x: torch.special.gammainc(POSITIVE.flip(0), x), [POSITIVE])],
    "igammac": [(lambda x: torch.special.gammaincc(POSITIVE.flip(0), x), [POSITIVE])],
    "special_zeta": [(lambda q: torch.special.zeta(POSITIVE.flip(0) + 1.5, q), [POSITIVE])],
    "special_xlog1py": [(torch.special.xlog1py, [X, POSITIVE])],
    "cumprod": [(lambda x: torch.cumprod(x, 1), [X]), (lambda a: torch.cumprod(a, 0), [WHOLE])],
    **{
        name: [
            (getattr(torch, name), [TIES, 1]),
            (getattr(torch, name), [TIES, 0]),
            (getattr(torch, name), [WHOLE, 1]),
            (lambda x, f=getattr(torch, name): f(x, 0)[0].detach(), [torch.tensor([0.5, torch.nan, 1.0, torch.nan])]),
        ]
        for name in ("cummax", "cummin")
    },
    "logcumsumexp": [(lambda x: torch.logcumsumexp(x, 1), [3 * X])],
    "add.Tensor": [
        (torch.add, [X, Y]),
        (lambda x, y: torch.add(x, y, alpha=3), [X, Y]),
        (lambda x: x + 2, [X]),
        (lambda a, b: a + b, [WHOLE, X]),
        (lambda a, b: a + b, [MASK, MASK]),
        (lambda x, y: x + y.expand(3, 4), [X, Y[0]]),
        (lambda x: x + torch.tensor(0.1), [X]),
    ],
    "add.Scalar": [(lambda x: aten.add.Scalar(x, 2, 3), [X])],
    "sub.Tensor": [(torch.sub, [X, Y]), (lambda a: a - 1.5, [WHOLE])],
    "sub.Scalar": [(lambda x: aten.sub.Scalar(x, 2), [X])],
    "rsub.Scalar": [(lambda x: 1 - x, [X]), (lambda a: 2 - a, [WHOLE])],
    "rsub.Tensor": [(torch.rsub, [X, Y])],
    "mul.Tensor": [(torch.mul, [X, Y[0]]), (lambda x: x * 3, [WHOLE]), (lambda a, b: a * b, [MASK, MASK])],
    "mul.Scalar": [(lambda x: aten.mul.Scalar(x, 2), [X])],
    "div.Tensor": [(torch.div, [X, POSITIVE]), (lambda a: a / 4, [WHOLE]), (lambda x: 1 / x, [POSITIVE])],
    "div.Scalar": [(lambda x: aten.div.Scalar(x, 3), [X])],
    "div.Tensor_mode": [
        (lambda a, b, mode=mode: torch.div(a, b, rounding_mode=mode), pair)
        for mode in ("floor", "trunc", None)
        for pair in ([WHOLE, OTHER], [WHOLE.short(), OTHER.short()], [5 * X, Y])
    ]
    + [
        (lambda a, b, mode=mode: torch.div(a.detach(), b.detach(), rounding_mode=mode), [BORDERS, BORDERS.flip(0)])
        for mode in ("floor", "trunc")
    ],
    "div.Scalar_mode": [(lambda a: aten.div.Scalar_mode(a, 3, rounding_mode="floor"), [WHOLE])],
    "remainder.Tensor": [(torch.remainder, [5 * X, Y]), (torch.remainder, [WHOLE, OTHER])],
    "remainder.Scalar": [(lambda x: x % 0.7, [5 * X])],
    "remainder.Scalar_Tensor": [(lambda x: torch.remainder(3.3, x.detach()), [Y])],
    "fmod.Tensor": [(torch.fmod, [5 * X, Y]), (torch.fmod, [WHOLE, OTHER])],
    "fmod.Scalar": [(lambda x: torch.fmod(x, 0.7), [5 * X])],
    "pow.Tensor_Scalar": [(lambda x, p=p: x**p, [POSITIVE]) for p in (2, 3, -1.5, 0, 0.5)]
    + [(lambda a: a**3, [WHOLE]), (lambda x: x**3, [X])],
    "pow.Tensor_Tensor": [(torch.pow, [POSITIVE, Y])],
    "pow.Scalar": [(lambda x: 2.5**x, [X])],
    "xlogy.Tensor": [(torch.xlogy, [X, POSITIVE]), (torch.xlogy, [TIES.abs(), POSITIVE[0]])],
    "xlogy.Scalar_Self": [(lambda y: torch.xlogy(2.0, y), [POSITIVE])],
    "xlogy.Scalar_Other": [(lambda x: torch.xlogy(x, 0.3), [TIES])],
    "alias": [(lambda x: aten.alias(x) * 2, [X])],
    "clone": [(lambda x: x.clone() * 2, [X])],
    "gradserve_client.stop_gradient": [(lambda x: x * x.detach(), [X]), (lambda a: a.detach() + 1, [WHOLE])],
    **{
        f"bitwise_{name}.Tensor": [
            (getattr(torch, f"bitwise_{name}"), [WHOLE.int(), OTHER.int()]),
            (getattr(torch, f"bitwise_{name}"), [MASK, WHOLE > 1]),
        ]
        for name in ("and", "or", "xor")
    },
    **{
        f"bitwise_{name}.Scalar": [(lambda a, op=getattr(aten, f"bitwise_{name}"): op.Scalar(a, 6), [WHOLE.int()])]
        for name in ("and", "or", "xor")
    },
    "bitwise_not": [(torch.bitwise_not, [WHOLE]), (lambda x: ~x, [MASK]), (lambda x: ~x, [WHOLE.to(torch.uint8)])],
    **{
        f"{name}.Tensor": [(getattr(torch, name), [TIES, TIES.flip(1)]), (getattr(torch, name), [WHOLE, 2 * X])]
        for name in ("eq", "ge", "gt", "le", "lt", "ne")
    },
    **{
        f"{name}.Scalar": [
            (lambda a, op=getattr(torch, name): op(a, 2), [WHOLE]),
            (lambda a, op=getattr(torch, name): op(a, 1.5), [WHOLE]),
        ]
        for name in ("eq", "ge", "gt", "le", "lt", "ne")
    },
    "logical_not": [(torch.logical_not, [WHOLE - 2])],
    "where.self": [(torch.where, [MASK, X, Y]), (lambda m, x: torch.where(m, x, 0.5), [MASK, X])],
    "where.ScalarOther": [(lambda m, x: aten.where.ScalarOther(m, x, 2), [MASK, X])],
    "where.ScalarSelf": [(lambda m, x: aten.where.ScalarSelf(m, 2, x), [MASK, X])],
    "masked_fill.Scalar": [(lambda x, m: x.masked_fill(m, -torch.inf).exp(), [X, MASK])],
    "masked_fill.Tensor": [(lambda x, m, v: x.masked_fill(m, v), [X, MASK, torch.tensor(0.5, dtype=torch.float64)])],
    "silu": [(F.silu, [X])],
    "gelu": [(F.gelu, [X]), (lambda x: F.gelu(x, approximate="tanh"), [X])],
    "leaky_relu": [(lambda x: F.leaky_relu(x, 0.2), [TIES])],
    "elu": [(lambda x: F.elu(x, 0.7), [TIES]), (F.selu, [X]), (lambda x: F.celu(x, 0.5), [TIES])],
    "softplus": [(F.softplus, [EDGES]), (lambda x: F.softplus(x, 2.0, 3.0), [EDGES])],
    "log_sigmoid_forward": [(F.logsigmoid, [3 * X])],
    "hardsigmoid": [(F.hardsigmoid, [EDGES.float()])],
    "hardswish": [(F.hardswish, [EDGES])],
    "native_dropout": [
        (lambda x: torch.native_dropout(x, 0.5, False)[0], [X]),
        (lambda x: F.dropout(x, 0.5, False) * F.alpha_dropout(x, 0.5, False) + F.dropout(x, 0.0, True), [X]),
    ],
    "clamp": [
        (lambda x: x.clamp(-1, 1), [EDGES]),
        (lambda x: x.clamp(max=2), [WHOLE]),
        (lambda x: x.clamp(0, 3), [WHOLE]),
    ],
    "clamp_min": [(lambda x: x.clamp_min(1.0), [EDGES]), (lambda x: x.clamp_min(1), [WHOLE])],
    "clamp_max": [(lambda x: x.clamp_max(1.0), [EDGES]), (lambda x: x.clamp_max(1), [WHOLE])],
    "clamp.Tensor": [(lambda x, a, b: x.clamp(a, b), [TIES, TIES.flip(1) - 1, TIES.flip(1)])],
    "clamp_min.Tensor": [(lambda x, a: x.clamp_min(a), [TIES, TIES.flip(1)])],
    "clamp_max.Tensor": [(lambda x, a: x.clamp_max(a), [TIES, TIES.flip(1)])],
    "hardtanh": [(F.hardtanh, [EDGES]), (F.relu6, [EDGES])],
    "sum": [(torch.sum, [X]), (torch.sum, [MASK])],
    "sum.dim_IntList": [(lambda x: x.sum((0, 1), keepdim=True), [X]), (lambda x: x.sum(-1), [WHOLE])],
    "mean": [(torch.mean, [X])],
    "mean.dim": [(lambda x: x.mean(1, keepdim=True), [X]), (lambda x: x.mean(1, dtype=torch.float64), [WHOLE])],
    "prod": [(torch.prod, [X])],
    "prod.dim_int": [(lambda x: x.prod(1), [TIES]), (lambda x: x.prod(1), [WHOLE])],
    "max": [(torch.max, [TIES])],
    "min": [(torch.min, [TIES])],
    "any": [(torch.any, [MASK])],
    "any.dim": [(lambda m: m.any(1), [MASK]), (lambda m: m.any(1), [WHOLE.to(torch.uint8)])],
    "any.dims": [(lambda m: m.any((0, 1)), [MASK])],
    "all": [(torch.all, [MASK])],
    "all.dim": [(lambda m: m.all(1, keepdim=True), [MASK])],
    "all.dims": [(lambda m: m.all((0, 1)), [MASK])],
    "var.correction": [
        (lambda x: x.var(1), [X]),
        (lambda x: x.var(correction=0), [X]),
        (lambda x: torch.var(x, 1, correction=0.5, keepdim=True), [X]),
    ],
    "var.dim": [(lambda x: aten.var.dim(x, [1], False), [X])],
    "std.correction": [(lambda x: x.std(1, correction=1), [TIES]), (lambda x: x.std(), [X])],
    "std.dim": [(lambda x: aten.std.dim(x, [1], False), [X])],
    "_softmax": [(lambda x: aten._softmax(x, 1, False), [X])],
    "_log_softmax": [(lambda x: aten._log_softmax(x, 0, False), [X])],
    "softmax.int": [(lambda x: x.softmax(0), [X]), (lambda x: x.softmax(-1, dtype=torch.float64), [X.float()])],
    "log_softmax.int": [(lambda x: x.log_softmax(1), [X]), (lambda x: x.log_softmax(0), [X[0, 0]])],
    "_safe_softmax": [(lambda x: aten._safe_softmax(x.masked_fill(x < 0.5, -torch.inf), 1), [X])],
    "logsumexp": [(lambda x: x.logsumexp(1), [X]), (lambda x: x.logsumexp((0, 1), keepdim=True), [X])],
    "linalg_vector_norm": [
        (lambda x, p=p: torch.linalg.vector_norm(x, p, 1), [torch.cat([TIES, torch.zeros(1, 4).double()])])
        for p in (2, 1, 3)
    ]
    + [(lambda x: torch.linalg.vector_norm(x, torch.inf), [X]), (lambda x: x.norm(), [X])],
    "max.dim": [(lambda x: torch.max(x, 1), [TIES]), (lambda x: torch.max(x, 0, keepdim=True)[0], [TIES])],
    "min.dim": [(lambda x: torch.min(x, 1), [TIES])],
    "argmax": [(torch.argmax, [X]), (lambda x: x.argmax(0, keepdim=True), [X])],
    "sort": [(lambda x: torch.sort(x, 1), [X]), (lambda x: torch.sort(x, 0, descending=True), [X])],
    "sort.stable": [
        (lambda x: torch.sort(x, dim=1, stable=True, descending=True), [TIES]),
        (lambda x: torch.argsort(x, dim=0, stable=True), [TIES]),
    ],
    "topk": [(lambda x: torch.topk(x, 2, 1), [X]), (lambda x: torch.topk(x, 2, 0, largest=False), [X])],
    "cumsum": [(lambda x: x.cumsum(1), [X]), (lambda x: x.cumsum(0), [MASK])],
    "view": [(lambda x: x.reshape(2, 6) * 2, [X])],
    "_unsafe_view": [(lambda x: aten._unsafe_view(x, [2, 6]) * 2, [X])],
    "permute": [(lambda x: x.permute(2, 0, 1) * 2, [SIGNAL]), (lambda x: x.T.sin(), [X])],
    "expand": [(lambda x: x[:, :1].expand(3, 4), [X]), (lambda x: torch.cat([x.expand(3, 4), x.expand(3, 4)]), [X[0]])],
    "repeat": [(lambda x: x.repeat(2, 1, 3), [X]), (lambda x: x.repeat(1, 1) * 2, [X])],
    "unsqueeze": [(lambda x: x.unsqueeze(-1), [X]), (lambda x: x[:, None], [X])],
    "squeeze.dim": [(lambda x: x[:1].squeeze(0) * 2, [X]), (lambda x: x.squeeze(0) * 2, [X])],
    "squeeze.dims": [(lambda x: torch.squeeze(x[:1], (0, 1)) * 2, [X])],
    "squeeze": [(lambda x: x[:1, :, None].squeeze() * 2, [X])],
    "cat": [
        (lambda x, y: torch.cat([x, y], 1), [X, Y]),
        (lambda x, a: torch.cat([x, a]), [X, WHOLE]),
        (lambda x: torch.cat([torch.zeros(0), x]), [X]),
    ],
    "split_with_sizes": [(lambda x: torch.split(x, [1, 3], 1), [X])],
    "split.Tensor": [(lambda x: torch.split(x, 3, 1), [X])],
    "unbind.int": [(lambda x: x.unbind(1), [X])],
    "slice.Tensor": [(lambda x: x[1:, 1:4:2], [X]), (lambda x: x[-2:, 5:], [X]), (lambda x: x[:], [X])],
    "select.int": [(lambda x: x[1] + x[-1], [X])],
    "flip": [(lambda x: x.flip(0, 1), [X])],
    "roll": [(lambda x: x.roll((1, -2), (0, 1)), [X]), (lambda x: x.roll(3), [X])],
    "diagonal": [(lambda x: x.diagonal(1), [X]), (lambda x: x.diagonal(0, 0, 2), [SIGNAL])],
    "tril": [(lambda x: x.tril(-1), [X])],
    "triu": [(lambda x: x.triu(1), [X])],
    "as_strided": [(lambda x: x.as_strided((2, 3), (1, 2), 1), [X])],
    "select_scatter": [(lambda x, y: torch.select_scatter(x, y, 1, -1), [X, Y[:, 0]])],
    "slice_scatter": [
        (lambda x, y: torch.slice_scatter(x, y, 1, 1, 3), [X, Y[:, :2]]),
        (lambda x, y: torch.slice_scatter(x, y, 1, 0, 4, 2), [X, Y[:, :2]]),
    ],
    "copy": [(lambda x, y: x.sin().copy_(y) * 2, [X, Y[0]]), (lambda x, a: x.sin().copy_(a) + x, [X, WHOLE])],
    "constant_pad_nd": [
        (lambda x: F.pad(x, (1, 2, -1, 1), value=0.5), [X]),
        (lambda x: F.pad(x, (1, 0)), [X]),
        (lambda x: F.pad(x, (1, 0), value=-torch.inf).exp(), [X]),
        (lambda a: F.pad(a, (1, 0), value=-3), [WHOLE]),
        (lambda m: F.pad(m, (1, 0), value=True), [MASK]),
    ],
    **{
        f"reflection_pad{n}d": [(lambda x, n=n: F.pad(x, (2, 1) * n, mode="reflect"), [each])]
        for n, each in ((1, SIGNAL), (2, IMAGE), (3, VOLUME))
    },
    **{
        f"replication_pad{n}d": [(lambda x, n=n: F.pad(x, (2, 1) * n, mode="replicate"), [each])]
        for n, each in ((1, SIGNAL), (2, IMAGE), (3, VOLUME))
    },
    "mm": [(torch.mm, [X, Y.t()])],
    "bmm": [(torch.bmm, [SIGNAL, SIGNAL.transpose(1, 2)])],
    "mv": [(torch.mv, [X, Y[0]])],
    "dot": [(torch.dot, [X[0], Y[0]])],
    "matmul": [(torch.matmul, [SIGNAL, normal(9, 2)]), (torch.matmul, [X, Y[0]])],
    "linear": [
        (F.linear, [SIGNAL, normal(5, 9), normal(5)]),
        (F.linear, [X, normal(5, 4)]),
        (F.linear, [X[0], normal(5, 4), normal(5)]),
        (F.linear, [X, normal(4)]),
    ],
    "addmm": [
        (torch.addmm, [normal(3, 3), X, Y.t()]),
        (lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=0.5), [normal(3), X, Y.t()]),
    ],
    "baddbmm": [(torch.baddbmm, [normal(2, 3, 3), SIGNAL, SIGNAL.transpose(1, 2)])],
    "addmv": [(lambda a, b, c: torch.addmv(a, b, c, beta=0), [normal(3), X, Y[0]])],
    "_linalg_slogdet": [(torch.linalg.slogdet, [SQUARE])],
    "_linalg_det": [(torch.linalg.det, [SQUARE]), (torch.linalg.det, [SQUARE + 0.3j * SQUARE.mT])],
    "_linalg_eigh": [(_projected, [SQUARE]), (_projected, [SQUARE + 0.3j * SQUARE.mT]), (_eigenvalues, [SQUARE])],
    "_linalg_svd": [
        (_without_phases, [X]),
        (_without_phases, [torch.complex(X, Y).mT]),
        (torch.linalg.svdvals, [torch.complex(X, Y)]),
        (lambda x: torch.linalg.norm(x, "nuc"), [X]),
    ],
    "linalg_qr": [
        (torch.linalg.qr, [X.mT]),
        (torch.linalg.qr, [torch.complex(X, Y).mT]),
        (lambda x: torch.linalg.qr(x, mode="r")[1].detach(), [X.mT]),
    ],
    "linalg_lu": [(torch.linalg.lu, [each]) for each in (SQUARE.flip(1), X, X.mT, torch.complex(X, Y).mT)],
    "linalg_pinv.atol_rtol_tensor": [(torch.linalg.pinv, [X]), (lambda x: torch.linalg.pinv(x, rtol=1e-3), [X.mT])],
    "linalg_matrix_exp": [(torch.linalg.matrix_exp, [SQUARE]), (torch.linalg.matrix_exp, [0.3j * SQUARE])],
    "_fft_c2c": [
        (torch.fft.fft, [torch.complex(X, Y)]),
        (lambda z: torch.fft.ifftn(z, norm="ortho"), [torch.complex(X, Y)]),
        (lambda z: torch.fft.ifft(z, 5, 0, norm="forward"), [torch.complex(X, Y)]),
    ],
    "_fft_r2c": [
        (torch.fft.rfft, [X]),
        (torch.fft.fft2, [X]),
        (lambda x: torch.fft.rfft2(x, (5, 3), norm="forward"), [X]),
        (
            lambda x: torch.stft(x, 4, hop_length=2, return_complex=True, window=torch.hann_window(4).double()),
            [SIGNAL[0]],
        ),
    ],
    "_fft_c2r": [
        (torch.fft.irfft, [torch.complex(X, Y)]),
        (lambda z: torch.fft.irfft2(z, (2, 7), norm="ortho"), [torch.complex(X, Y)]),
    ],
    "complex": [(torch.complex, [X, Y])],
    "polar": [(torch.polar, [POSITIVE, Y])],
    "view_as_real": [(lambda z: z.real * z.imag, [torch.complex(X, Y)]), (torch.view_as_real, [torch.complex(X, Y)])],
    "view_as_complex": [(torch.view_as_complex, [normal(3, 2)])],
    "_conj": [(lambda z: z.conj() * 2j, [torch.complex(X, Y)]), (lambda z: z.mH @ z, [torch.complex(X, Y)])],
    "_conj_physical": [(torch.conj_physical, [torch.complex(X, Y)])],
    "angle": [(torch.angle, [torch.complex(X, Y)]), (lambda x: torch.angle(x).detach(), [X])],
    "unfold": [(lambda x: x.unfold(1, 2, 2), [SIGNAL]), (lambda x: x.unfold(2, 3, 2), [SIGNAL])],
    "linalg_inv": [(torch.linalg.inv, [SQUARE])],
    "linalg_inv_ex": [(lambda a: torch.linalg.inv_ex(a)[0], [SQUARE])],
    "_linalg_solve_ex": [(lambda a, b: torch.linalg.solve_ex(a, b)[0], [SQUARE, normal(2, 3, 2)])],
    "linalg_solve": [
        (torch.linalg.solve, [SQUARE, normal(2, 3, 2)]),
        (lambda a, b: torch.linalg.solve(a, b, left=False), [SQUARE, normal(2, 2, 3)]),
    ],
    "linalg_solve_triangular": [
        (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), [SQUARE, normal(2, 3, 2)]),
        (lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, left=False), [SQUARE, normal(2, 2, 3)]),
    ],
    "linalg_cholesky_ex": [(lambda a: torch.linalg.cholesky_ex(a @ a.mT)[0], [SQUARE])],
    "linalg_cholesky": [
        (lambda a: torch.linalg.cholesky(a @ a.mT), [SQUARE]),
        (lambda a: torch.linalg.cholesky(a @ a.mT, upper=True), [SQUARE]),
    ],
    "convolution": [
        (
            lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, dilation=(1, 2)),
            [IMAGE, normal(4, 3, 3, 2), normal(4)],
        ),
        (lambda x, w: F.conv1d(x, w, padding=1, groups=3), [SIGNAL, normal(6, 1, 3)]),
        (lambda x, w: F.conv3d(x, w), [VOLUME, normal(3, 2, 2, 3, 2)]),
        (lambda x, w: F.conv2d(x, w, padding="same"), [IMAGE, normal(4, 3, 2, 3)]),
        (
            lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
            [IMAGE, normal(3, 4, 3, 3), normal(4)],
        ),
        (lambda x, w: F.conv_transpose1d(x, w, stride=2, output_padding=1, dilation=2), [SIGNAL, normal(3, 4, 3)]),
        (lambda x, w: F.conv_transpose3d(x, w, stride=2), [VOLUME, normal(2, 3, 2, 2, 2)]),
    ],
    "col2im": [
        (lambda x: F.fold(x, (6, 7), (2, 3), padding=1, stride=(2, 1), dilation=(1, 2)), [normal(2, 3 * 6, 20)]),
        (lambda x: F.fold(x, (4, 4), 2), [normal(8, 9)]),
        (lambda x: F.unfold(x, (2, 3), padding=1), [IMAGE]),
    ],
    "max_pool2d_with_indices": [
        (lambda x: F.max_pool2d(x, 2), [IMAGE]),
        (lambda x: F.max_pool2d(x, (3, 2), stride=2, padding=1, return_indices=True), [IMAGE]),
        (lambda x: F.max_pool2d(x, 3, stride=2, ceil_mode=True, dilation=2, padding=1, return_indices=True), [IMAGE]),
        (lambda x: F.max_pool2d(x, 3, stride=2, ceil_mode=True, dilation=(1, 2), padding=1), [IMAGE]),
        (lambda x: F.max_pool1d(x, 3, 2), [SIGNAL]),
        (lambda x: F.max_pool1d(x, 3, 2, dilation=2, ceil_mode=True), [SIGNAL]),
    ],
    "max_pool3d_with_indices": [
        (lambda x: F.max_pool3d(x, 2, stride=1, return_indices=True), [VOLUME]),
        (lambda x: F.max_pool3d(x, 2, padding=1, dilation=(1, 2, 1), ceil_mode=True), [VOLUME]),
    ],
    "avg_pool1d": [
        (lambda x: F.avg_pool1d(x, 3, 2, padding=1), [SIGNAL]),
        (lambda x: F.avg_pool1d(x, 4, 3, padding=1, ceil_mode=True, count_include_pad=False), [SIGNAL]),
    ],
    "avg_pool2d": [
        (lambda x: F.avg_pool2d(x, 2, padding=1), [IMAGE]),
        (lambda x: F.avg_pool2d(x, 3, 2, padding=1, ceil_mode=True), [IMAGE]),
        (lambda x: F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False), [IMAGE]),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=3), [IMAGE]),
    ],
    "avg_pool3d": [
        (lambda x: F.avg_pool3d(x, 2, 1), [VOLUME]),
        (lambda x: F.avg_pool3d(x, (2, 3, 2), 2, padding=1, ceil_mode=True, divisor_override=5), [VOLUME]),
    ],
    "adaptive_avg_pool1d": [(lambda x: F.adaptive_avg_pool1d(x, 4), [SIGNAL])],
    "_adaptive_avg_pool2d": [
        (lambda x: F.adaptive_avg_pool2d(x, (4, 7)), [IMAGE]),
        (lambda x: F.adaptive_avg_pool2d(x, 1), [IMAGE]),
    ],
    "_adaptive_avg_pool3d": [(lambda x: F.adaptive_avg_pool3d(x, (3, 2, 1)), [VOLUME])],
    "adaptive_max_pool2d": [
        (lambda x: F.adaptive_max_pool2d(x, (4, 3)), [IMAGE]),
        (lambda x: F.adaptive_max_pool1d(x, 4), [SIGNAL]),
    ],
    "adaptive_max_pool3d": [(lambda x: F.adaptive_max_pool3d(x, (3, 2, 1)), [VOLUME])],
    "native_layer_norm": [
        (lambda x, w, b: F.layer_norm(x, (3, 9), w, b), [SIGNAL, normal(3, 9), normal(3, 9)]),
        (lambda x, b: F.layer_norm(x, (4,), None, b), [X, normal(4)]),
        (lambda x: torch.native_layer_norm(x, [4], None, None, 1e-5), [X]),
    ],
    "rms_norm": [
        (lambda x: F.rms_norm(x, (4,), None, 1e-3), [X]),
        (lambda x, w: F.rms_norm(x, (4,), w), [X, normal(4)]),
    ],
    "native_group_norm": [
        (lambda x, w, b: F.group_norm(x, 3, w, b), [normal(2, 6, 5), normal(6), normal(6)]),
        (lambda x: torch.native_group_norm(x, None, None, 2, 6, 5, 3, 1e-5), [normal(2, 6, 5)]),
        # with a bias alone, PyTorch has values and no gradient
        (lambda x, b: torch.native_group_norm(x, None, b, 2, 6, 5, 3, 1e-5)[0].detach(), [normal(2, 6, 5), normal(6)]),
    ],
    "_native_batch_norm_legit.no_stats": [
        (lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [IMAGE, normal(3), normal(3)]),
        (lambda x, b: aten._native_batch_norm_legit.no_stats(x, None, b, True, 0.1, 1e-5), [IMAGE, normal(3)]),
    ],
    "_native_batch_norm_legit_functional": [
        (
            lambda x, m, v: F.batch_norm(x, m.detach() + 1, v.detach() * 2, training=True),
            [IMAGE, normal(3), normal(3).abs()],
        ),
        (
            lambda x, m, v: aten._native_batch_norm_legit_functional(
                x, None, None, m.detach(), v.detach(), False, 0.1, 1e-5
            )[0],
            [IMAGE, normal(3), normal(3).abs()],
        ),
    ],
    "_native_batch_norm_legit_no_training": [
        (
            lambda x, w, b, m, v: F.batch_norm(x, m.detach(), v.detach(), w, b),
            [IMAGE, normal(3), normal(3), normal(3), normal(3).abs()],
        ),
    ],
    **{
        f"{name}.vec": [(lambda x, mode=mode, o=o: F.interpolate(x, mode=mode, **o), [each]) for o in options]
        for name, mode, each, options in (
            ("upsample_linear1d", "linear", SIGNAL, [{"size": 13}, {"scale_factor": 0.6}]),
            (
                "upsample_bilinear2d",
                "bilinear",
                IMAGE,
                [{"size": (9, 4)}, {"scale_factor": 1.7}, {"size": (9, 4), "align_corners": True}],
            ),
            ("upsample_trilinear3d", "trilinear", VOLUME, [{"size": (5, 3, 4)}]),
            (
                "upsample_bicubic2d",
                "bicubic",
                IMAGE,
                [{"size": (9, 4)}, {"scale_factor": 1.7}, {"size": (9, 4), "align_corners": True}],
            ),
            ("_upsample_bilinear2d_aa", "bilinear", IMAGE, [{"size": (9, 4), "antialias": True}]),
            (
                "_upsample_bicubic2d_aa",
                "bicubic",
                IMAGE,
                [
                    {"size": (3, 4), "antialias": True},
                    {"scale_factor": 0.55, "antialias": True},
                    {"size": (4, 9), "antialias": True, "align_corners": True},
                ],
            ),
            ("upsample_nearest1d", "nearest", SIGNAL, [{"size": 13}]),
            ("upsample_nearest2d", "nearest", IMAGE, [{"scale_factor": 2}, {"size": (9, 4)}]),
            ("upsample_nearest3d", "nearest", VOLUME, [{"size": (5, 3, 4)}]),
            ("_upsample_nearest_exact1d", "nearest-exact", SIGNAL, [{"size": 13}]),
            ("_upsample_nearest_exact2d", "nearest-exact", IMAGE, [{"size": (9, 4)}]),
            ("_upsample_nearest_exact3d", "nearest-exact", VOLUME, [{"size": (5, 3, 4)}]),
        )
    },
    "grid_sampler_2d": [
        (_grid(mode=mode, padding_mode=padding, align_corners=corners), [IMAGE, GRID])
        for mode in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
        for corners in (True, False)
    ],
    "scaled_dot_product_attention": [
        (F.scaled_dot_product_attention, [normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 2)]),
        (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
            [normal(2, 4, 5), normal(2, 6, 5), normal(2, 6, 5)],
        ),
        (
            lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
            [normal(2, 4, 5), normal(2, 6, 5), normal(2, 6, 5), torch.arange(24).reshape(4, 6) > 9],
        ),
        (
            lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
            [normal(2, 4, 5), normal(2, 6, 5), normal(2, 6, 5), normal(4, 6)],
        ),
        (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, torch.ones(4, 6).tril().bool()),
            [normal(2, 4, 5), normal(2, 6, 5), normal(2, 6, 5)],
        ),
        (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
            [normal(2, 4, 3, 5), normal(2, 2, 6, 5), normal(2, 2, 6, 5)],
        ),
        (
            lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True),
            [normal(2, 4, 3, 5), normal(2, 2, 6, 5), normal(2, 2, 6, 5), normal(2, 4, 3, 6)],
        ),
    ],
    "_cdist_forward": [
        (lambda a, b: torch.cdist(a, b), [SIGNAL, SIGNAL[:, :2]]),
        (lambda a, b: torch.cdist(a, b, p=1), [X, Y]),
        (lambda a, b: torch.cdist(a, b, p=3), [SIGNAL, SIGNAL[:1, :2]]),
    ],
    "_pdist_forward": [(F.pdist, [torch.cat([X, X[:1]])]), (lambda x: F.pdist(x, 1.5), [X])],
    "binary_cross_entropy": [
        (F.binary_cross_entropy, [torch.cat([UNIT, PLAIN]), torch.cat([UNIT.flip(0), PLAIN])]),
        (lambda p, t, w: F.binary_cross_entropy(p, t, w.detach(), reduction="sum"), [UNIT, MASK.double(), POSITIVE]),
    ],
    "mse_loss": [(_mse(), [X, Y]), (_mse(reduction="sum"), [X, Y]), (_mse(reduction="none"), [X, Y])],
    "full": [(lambda x: x + torch.full((3, 4), 0.5), [X])],
    "full_like": [(lambda x: torch.full_like(x, 0.5), [X])],
    "scalar_tensor": [(lambda x: x + torch.scalar_tensor(2.0), [X])],
    "zeros": [(lambda x: torch.cat([x, torch.zeros(5, 4)]), [X])],
    "zeros_like": [(lambda x: torch.zeros_like(x), [X])],
    "ones": [(lambda x: torch.cat([x, torch.ones(5, 4)]), [X])],
    "ones_like": [(lambda x: torch.ones_like(x), [X])],
    "empty.memory_format": [(lambda x: torch.empty(3, 4).fill_(2.0) + x, [X])],
    "empty_like": [(lambda x: torch.empty_like(x).fill_(2.0) + x, [X])],
    "empty_strided": [(lambda x: torch.empty_strided((3, 4), (4, 1)).fill_(2.0) + x, [X])],
    "empty_permuted": [(lambda x: torch.empty_permuted((3, 4), (1, 0)).fill_(2.0) + x, [X])],
    "new_empty_strided": [(lambda x: x.new_empty_strided((3, 4), (4, 1)).fill_(2.0) + x, [X])],
    "fill.Scalar": [(lambda x: x.sin().fill_(2.0) + x, [X])],
    "fill.Tensor": [(lambda x, v: torch.fill(x, v), [X, torch.tensor(0.5, dtype=torch.float64)])],
    "arange": [(lambda x: x + torch.arange(4), [X])],
    "arange.start": [(lambda x: x + torch.arange(1, 5), [X])],
    "arange.start_step": [(lambda x: x + torch.arange(0, 8, 2), [X])],
    "eye": [(lambda x: x @ torch.eye(4).double(), [X])],
    "eye.m": [(lambda x: x + torch.eye(3, 4), [X])],
    "linspace": [(lambda x: x + torch.linspace(0, 1, 4), [X])],
}
