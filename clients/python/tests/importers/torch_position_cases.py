"""Programs that read and write at positions, by the op's name in the table."""

from __future__ import annotations

from typing import Final

import torch
from torch.nn import functional as F

from clients.python.tests.importers.torch_cases import IMAGE, MASK, OTHER, ROWS, TIES, WHOLE, Case, X, Y, aten
from clients.python.tests.importers.torch_made import normal

POSITION_CASES: Final[dict[str, list[Case]]] = {
    "index.Tensor": [
        (lambda x, i: x[i], [X, torch.tensor([[2, -1], [0, 0]])]),
        (lambda x, i, j: x[i, j], [X, ROWS, torch.tensor([3, -2, 0, 1])]),
        (lambda x, i: x[:, i], [X, torch.tensor([[2, -1], [0, 3]])]),
        (lambda x, i, j: x[:, i, :, j], [IMAGE, torch.tensor([0, 2]), torch.tensor([[1], [3]])]),
        (lambda x, i, j: x[0, :, i, j], [IMAGE, torch.tensor([0, 2]), torch.tensor([1, 3])]),
        (lambda x: x[[2, 0, -1]], [X]),
        (lambda x: x[:, [[0, -1]], [[2], [1]]], [IMAGE]),
        (lambda x, i: x[:, torch.tensor([1, 0, -1]), :, i], [IMAGE, torch.tensor([-1, 2, 0])]),
    ],
    "_unsafe_index.Tensor": [(lambda x, i: aten._unsafe_index(x, [None, i]), [X, ROWS])],
    "index_select": [
        (lambda x, i: x.index_select(1, i), [X, ROWS]),
        (lambda x: x.index_select(0, torch.tensor([1, 1])), [X]),
    ],
    "gather": [(lambda x, i: x.gather(1, i), [X, torch.tensor([[0, 3], [1, 1]])])],
    "embedding": [
        (lambda w, i: F.embedding(i, w), [normal(5, 3), torch.tensor([[1, 4], [1, 0]])]),
        (lambda w, i: F.embedding(i, w, padding_idx=1), [normal(5, 3), torch.tensor([[1, 4], [1, 0]])]),
    ],
    "nonzero_static": [(lambda m, k=k: torch.nonzero_static(m, size=k), [MASK]) for k in (3, 9)]
    + [(lambda a: torch.nonzero_static(a - 2, size=9, fill_value=7), [WHOLE])],
    "repeat_interleave.Tensor": [
        (lambda x, n: x.repeat_interleave(n, 0, output_size=6), [X, torch.tensor([2, 0, 4])]),
    ],
    "_embedding_bag": [
        (
            lambda w, i, o: aten._embedding_bag(w, i, o)[0],
            [normal(5, 3), torch.tensor([1, 4, 1, 0, 2]), torch.tensor([0, 2, 2])],
        )
    ],
    "_embedding_bag_forward_only": [
        (
            lambda w, i, o, mode=mode: F.embedding_bag(i, w, o, mode=mode),
            [normal(5, 3), torch.tensor([1, 4, 1, 0, 2]), torch.tensor([0, 2, 2])],
        )
        for mode in ("sum", "mean", "max")
    ]
    + [
        (
            lambda w, i, o, mode=mode: F.embedding_bag(i, w, o, mode=mode, padding_idx=1),
            [normal(5, 3), torch.tensor([1, 4, 1, 0, 2, 1]), torch.tensor([0, 3, 5])],
        )
        for mode in ("sum", "mean", "max")
    ]
    + [
        (
            lambda w, i, o, s: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=s),
            [normal(5, 3), torch.tensor([1, 4, 1]), torch.tensor([0, 2]), normal(3)],
        ),
    ],
    "index_put": [
        (lambda x, i, v: x.index_put((i,), v, accumulate=True), [X, torch.tensor([1, 1, -1]), normal(3, 4)]),
        (lambda x, i, v: x.index_put((i,), v), [X, torch.tensor([1, -1]), normal(2, 4)]),
        (lambda x, i, j, v: x.index_put((i, j), v), [X, torch.tensor([1, 2]), torch.tensor([0, 3]), normal(2)]),
        (lambda x, i, v: aten.index_put(x, [None, i], v), [X, torch.tensor([1, 3]), normal(3, 2)]),
        (lambda x, i, y: x.index_add(1, i, y), [X, ROWS, Y]),
        (lambda x, i, y: x.index_copy(0, i, y), [X, torch.tensor([2, 0]), Y[:2]]),
        (lambda x, m: torch.index_put(x, (m,), torch.tensor(2.0).double()), [X, MASK]),
        (lambda x, m, v: torch.index_put(x, (m,), v), [X, MASK[:, 0], normal(4)]),
        (lambda x, m, v: torch.index_put(x, (m,), v, accumulate=True), [X, MASK[:, 0], normal(4)]),
        (lambda a, i, v: a.index_put((i,), v), [MASK, torch.tensor([1]), ~MASK[:1]]),
    ],
    "index_reduce": [
        (
            lambda x, i, y, r=r, s=s: x.index_reduce(1, i, y, r, include_self=s),
            [TIES if s else TIES + 0.25, torch.tensor([2, 0, 2, 1]), TIES.flip(1) + extra],
        )
        for r, extra in (("mean", 0), ("prod", 0.5), ("amax", 0), ("amin", 0))
        for s in (True, False)
    ],
    "_unsafe_index_put": [
        (lambda x, i, v: aten._unsafe_index_put(x, [i], v, True), [X, torch.tensor([1, 1]), normal(2, 4)])
    ],
    "scatter.src": [
        (lambda x, i, y: x.scatter(1, i, y.detach()), [X, torch.tensor([[0, 3], [1, 2]]), Y]),
        (lambda x, i, y: x.scatter(1, i, y), [X, torch.tensor([[0, 3], [1, 2]]), Y[:2, :2]]),
        (lambda x, i, y: x.scatter(0, i, y), [WHOLE, torch.tensor([[0, 2, 1, 1]]), OTHER]),
    ],
    "scatter.value": [(lambda x, i: x.scatter(1, i, 0.5), [X, torch.tensor([[0, 3], [1, 1]])])],
    "scatter_add": [
        (lambda x, i, y: x.scatter_add(1, i, y.detach()), [X, torch.tensor([[0, 3], [1, 1]]), Y]),
        (lambda x, i, y: x.scatter_add(1, i, y), [X, torch.tensor([[0, 3], [1, 1]]), Y[:2, :2]]),
    ],
    "scatter_reduce.two": [
        (
            lambda x, i, y, r=r, s=s: x.scatter_reduce(0, i, y, r, include_self=s),
            [TIES if s else TIES + 0.25, torch.tensor([[0, 1, 1, 2], [0, 1, 0, 2]]), TIES.flip(1)[:2] + extra],
        )
        for r, extra in (("sum", 0), ("mean", 0), ("prod", 0.5), ("amax", 0), ("amin", 0))
        for s in (True, False)
    ]
    + [
        (lambda a, i, b, r=r: a.scatter_reduce(1, i, b, r), [WHOLE, torch.tensor([[0, 3, 3], [1, 1, 2]]), OTHER])
        for r in ("sum", "prod", "amax")
    ],
    "masked_scatter": [(lambda x, m, s: x.masked_scatter(m, s), [X, MASK, normal(20)])],
}
