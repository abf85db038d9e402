"""Programs with complex numbers, by the op's name in the table."""

from __future__ import annotations

from typing import Final

import torch

from clients.python.tests.importers.torch_cases import MASK, ROWS, SQUARE, Case, X, Y
from clients.python.tests.importers.torch_made import normal

Z, W = torch.complex(X, Y), torch.complex(Y.flip(0), X.flip(1))
#: functions of one complex tensor
_FUNCTIONS: Final = (
    "abs",
    "neg",
    "cos",
    "cosh",
    "exp",
    "log",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tanh",
)
COMPLEX_CASES: Final[dict[str, list[Case]]] = {
    **{name: [(getattr(torch, name), [Z])] for name in _FUNCTIONS},
    "add.Tensor": [
        (torch.add, [Z, W]),
        (lambda z, x: z + x, [Z, X]),
        (lambda z: torch.add(z + 2.5, z, alpha=2), [Z]),
    ],
    "sub.Tensor": [(torch.sub, [Z, W])],
    "mul.Tensor": [(torch.mul, [Z, W]), (lambda z: z * 2 * (1 - 2j), [Z]), (lambda x: x * 1j, [X])],
    "div.Tensor": [(torch.div, [Z, W]), (lambda z: z / 2.5, [Z])],
    "sum.dim_IntList": [(lambda z: z.sum(1), [Z])],
    "mean.dim": [(lambda z: z.mean(0), [Z])],
    "prod.dim_int": [(lambda z: z.prod(1), [Z])],
    "cumsum": [(lambda z: z.cumsum(1), [Z])],
    "cumprod": [(lambda z: z.cumprod(1), [Z])],
    "matmul": [(torch.matmul, [Z, W.mT])],
    "cat": [(lambda z, x: torch.cat([z, x]), [Z, X])],
    "where.self": [(torch.where, [MASK, Z, W])],
    "index.Tensor": [(lambda z, i: z[i % 3, i], [Z, ROWS])],
    "eq.Tensor": [(torch.eq, [Z, Z.flip(0)])],
    "_to_copy": [(lambda x: x.to(torch.complex64), [X]), (lambda x: (x * 9).to(torch.int16) * 3, [X])],
    "linalg_solve": [
        (torch.linalg.solve, [SQUARE + 0.3j * SQUARE.mT, torch.complex(normal(2, 3, 2), normal(2, 3, 2))])
    ],
    "linalg_inv": [(torch.linalg.inv, [SQUARE + 0.3j * SQUARE.mT])],
}
