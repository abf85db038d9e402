"""More PyTorch programs: recurrent nets, flows, graphs, losses, equations, and unusual training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional as F

from clients.python.tests.importers.torch_made import normal, seeded
from clients.python.tests.importers.torch_programs import composed, program, whole


@program
def lstm_by_cells() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = c = x.new_zeros(x.shape[0], 4)
        rows = []
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
            rows.append(h)
        return torch.stack(rows, 1)

    return composed(forward, lambda: {"cell": nn.LSTMCell(3, 4)}), [normal(2, 4, 3)]


@program
def gru_by_cells() -> Any:
    def forward(self: Any, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        for step in x:
            h = self.cell(step, h)
        return h

    return composed(forward, lambda: {"cell": nn.GRUCell(3, 4)}), [normal(4, 2, 3), normal(2, 4)]


@program
def lstm_that_classifies() -> Any:
    def forward(self: Any, ids: torch.Tensor) -> torch.Tensor:
        _, (h, _) = self.lstm(self.embed(ids))
        return self.head(torch.cat([h[-2], h[-1]], 1)).log_softmax(1)

    return composed(
        forward,
        lambda: {
            "embed": nn.Embedding(9, 3, padding_idx=0),
            "lstm": nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
            "head": nn.Linear(8, 3),
        },
    ), [whole(9, 2, 6)]


@program
def gru_encoder_and_decoder() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        _, h = self.encode(x)
        y, _ = self.decode(h.transpose(0, 1).expand(-1, 3, -1).contiguous(), h)
        return self.head(y)

    return composed(
        forward,
        lambda: {
            "encode": nn.GRU(3, 4, batch_first=True),
            "decode": nn.GRU(4, 4, batch_first=True),
            "head": nn.Linear(4, 2),
        },
    ), [normal(2, 5, 3)]


class Coupling(nn.Module):
    """A coupling layer of real NVP, which moves half of the numbers depending on the others."""

    def __init__(self, flip: bool) -> None:
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        fixed, moved = x.chunk(2, 1)[:: -1 if self.flip else 1]
        scale, shift = self.net(fixed).chunk(2, 1)
        moved = moved * scale.tanh().exp() + shift
        return torch.cat([moved, fixed] if self.flip else [fixed, moved], 1), scale.tanh().sum(1)


@program
def normalising_flow() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        total = 0.0
        for layer in (self.a, self.b):
            x, log = layer(x)
            total = total + log
        return -(-0.5 * x.square().sum(1) - 2 * math.log(2 * math.pi) + total).mean()

    return composed(forward, lambda: {"a": Coupling(False), "b": Coupling(True)}), [normal(5, 4)]


@program
def flow_by_a_matrix() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        y = F.softplus(x @ self.w) - math.log(2.0)
        return (
            torch.distributions.Normal(0.0, 1.0, validate_args=False).log_prob(y).sum(1)
            + torch.linalg.slogdet(self.w)[1]
        )

    return composed(forward, lambda: {"w": torch.eye(4) + 0.1 * torch.randn(4, 4)}), [normal(5, 4)]


@program
def planar_flow_with_masks() -> Any:
    def forward(self: Any, x: torch.Tensor) -> Any:
        return F.linear(x, self.w * torch.ones(4, 4).tril(-1), self.b).sinh().asinh(), x.tan().atan()

    return composed(forward, lambda: {"w": torch.randn(4, 4), "b": torch.randn(4)}), [normal(3, 4)]


EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 3, 4, 0]])


@program
def graph_convolution() -> Any:
    def forward(self: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        degree = torch.zeros(5, dtype=x.dtype).index_add(0, target, torch.ones(6, dtype=x.dtype))
        sent = self.w(x)[source] / degree[target].unsqueeze(1)
        return torch.zeros(5, 4, dtype=x.dtype).index_add(0, target, sent).relu()

    return composed(forward, lambda: {"w": nn.Linear(3, 4)}), [normal(5, 3), EDGES]


@program
def graph_attention() -> Any:
    def forward(self: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        h = self.w(x)
        score = F.leaky_relu(self.a(torch.cat([h[source], h[target]], 1)), 0.2).squeeze(1)
        most = torch.full((5,), -torch.inf, dtype=x.dtype).scatter_reduce(0, target, score, "amax")
        weight = (score - most[target]).exp()
        total = torch.zeros(5, dtype=x.dtype).scatter_add(0, target, weight)
        sent = h[source] * (weight / total[target]).unsqueeze(1)
        return torch.zeros_like(h).scatter_add(0, target.unsqueeze(1).expand(-1, 4), sent)

    return composed(forward, lambda: {"w": nn.Linear(3, 4), "a": nn.Linear(8, 1)}), [normal(5, 3), EDGES]


@program
def message_passing() -> Any:
    def forward(self: Any, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            sent = self.send(torch.cat([x[edges[0]], x[edges[1]]], 1)).relu()
            x = self.cell(torch.zeros_like(x).index_put((edges[1],), sent, accumulate=True), x)
        return x.scatter_reduce(0, torch.zeros(5, 3, dtype=torch.long), x, "mean", include_self=False)[0]

    return composed(forward, lambda: {"send": nn.Linear(6, 3), "cell": nn.GRUCell(3, 3)}), [normal(5, 3), EDGES]


@program
def distances_between_points() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        between = torch.cdist(x, self.centres)
        return (-((between / self.width.exp()) ** 2)).softmax(1) @ self.values + F.pdist(x).mean()

    return composed(
        forward, lambda: {"centres": torch.randn(4, 3), "width": torch.zeros(4), "values": torch.randn(4, 2)}
    ), [normal(5, 3)]


LOSSES: Final[dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "mse": lambda y, t, _: F.mse_loss(y, t),
    "l1": lambda y, t, _: F.l1_loss(y, t),
    "smooth": lambda y, t, _: F.smooth_l1_loss(y, t, beta=0.5),
    "huber": lambda y, t, _: F.huber_loss(y, t, delta=0.5),
    "poisson": lambda y, t, _: F.poisson_nll_loss(y, t.abs(), full=True),
    "gaussian": lambda y, t, _: 0.5 * ((t.abs() + 0.1).log() + (y - t).square() / (t.abs() + 0.1)).mean(),
    "bce": lambda y, t, _: F.binary_cross_entropy(y.sigmoid(), t.sigmoid()),
    "logits": lambda y, t, _: F.binary_cross_entropy_with_logits(
        y, t.sigmoid(), pos_weight=torch.tensor([1.0, 2.0, 0.5])
    ),
    "kl": lambda y, t, _: F.kl_div(y.log_softmax(1), t.softmax(1), reduction="batchmean"),
    "cosine": lambda y, t, _: 1 - F.cosine_similarity(y, t).mean(),
    "hinge": lambda y, t, _: F.hinge_embedding_loss(y, t.sign(), margin=0.4),
    "margin": lambda y, t, _: F.triplet_margin_loss(y, t, t.flip(0)),
    "cross": lambda y, _, c: F.cross_entropy(y, c, weight=torch.tensor([1.0, 2.0, 3.0]).double(), label_smoothing=0.1),
    "ignored": lambda y, _, c: F.cross_entropy(y, c, ignore_index=1),
    "likelihood": lambda y, _, c: F.nll_loss(y.log_softmax(1), c, reduction="sum"),
    "multi": lambda y, _, c: F.soft_margin_loss(y, F.one_hot(c, 3) * 2.0 - 1),
}


@program
def losses() -> Any:
    def forward(self: Any, x: torch.Tensor, t: torch.Tensor, classes: torch.Tensor) -> Any:
        y = self.net(x)
        return {name: loss(y, t, classes) for name, loss in LOSSES.items()}

    return composed(forward, lambda: {"net": nn.Linear(4, 3)}), [
        normal(5, 4),
        normal(5, 3),
        torch.tensor([0, 2, 1, 1, 0]),
    ]


@program
def contrastive_loss() -> Any:
    def forward(self: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a, b = F.normalize(self.net(a), dim=1), F.normalize(self.net(b), dim=1)
        return F.cross_entropy(a @ b.T * self.scale.exp(), torch.arange(5))

    return composed(forward, lambda: {"net": nn.Linear(4, 3), "scale": torch.zeros(())}), [
        normal(5, 4),
        normal(5, 4, seed=9),
    ]


@program
def runge_kutta_steps() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = 0.1
        for _ in range(4):
            k1 = self.field(x)
            k2 = self.field(x + h / 2 * k1)
            k3 = self.field(x + h / 2 * k2)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + self.field(x + h * k3))
        return x

    return composed(forward, lambda: {"field": nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))}), [
        normal(5, 2)
    ]


@program
def pendulum_by_leapfrog() -> Any:
    def forward(self: Any, q: torch.Tensor, p: torch.Tensor) -> Any:
        for _ in range(5):
            p = p - 0.05 * self.gravity * torch.sin(q)
            q = q + 0.1 * p
            p = p - 0.05 * self.gravity * torch.sin(q)
        return q, p

    return composed(forward, lambda: {"gravity": torch.tensor(9.81)}), [normal(4), normal(4, seed=2)]


@program
def heat_by_finite_differences() -> Any:
    def forward(self: Any, u: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            u = u + self.rate.sigmoid() * (u.roll(1, 0) + u.roll(-1, 0) - 2 * u)
            u[0] = 0
            u[-1] = u[-2]
        return u

    def guarded(self: Any, u: torch.Tensor) -> torch.Tensor:
        return forward(self, u.clone())

    return composed(guarded, lambda: {"rate": torch.randn(8)}), [normal(8)]


@program
def variational_autoencoder() -> Any:
    def forward(self: Any, x: torch.Tensor, noise: torch.Tensor) -> Any:
        mean, log = self.encode(x).chunk(2, 1)
        y = self.decode(mean + (log / 2).exp() * noise)
        kl = -0.5 * (1 + log - mean.pow(2) - log.exp()).sum(1).mean()
        return {"reconstruction": y, "loss": F.mse_loss(y, x, reduction="sum") / 5 + kl}

    return composed(
        forward,
        lambda: {
            "encode": nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)),
            "decode": nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4)),
        },
    ), [normal(5, 4), normal(5, 2, seed=3)]


@program
def bag_of_words() -> Any:
    def forward(self: Any, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.head(self.bag(ids, offsets))

    return composed(forward, lambda: {"bag": nn.EmbeddingBag(9, 4, mode="mean"), "head": nn.Linear(4, 2)}), [
        whole(9, 7),
        torch.tensor([0, 3, 5]),
    ]


@program
def mixture_of_experts() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        values, which = self.gate(x).topk(2, dim=1)
        weights = torch.zeros(x.shape[0], 3, dtype=x.dtype).scatter(1, which, values.softmax(1))
        return torch.einsum("be,beo->bo", weights, torch.stack([each(x) for each in self.experts], 1))

    return composed(
        forward, lambda: {"gate": nn.Linear(4, 3), "experts": nn.ModuleList(nn.Linear(4, 2) for _ in range(3))}
    ), [normal(5, 4)]


@program
def weight_norm_and_gates() -> Any:
    build = lambda: nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), nn.PReLU(5), nn.Linear(5, 4), nn.GLU(1)
    )
    return seeded(build), [normal(3, 4)]


@program
def gaussian_process() -> Any:
    def forward(self: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kernel = (-0.5 * (x[:, None] - x[None]).square().sum(-1) / self.width.exp()).exp() + 0.1 * torch.eye(6)
        factor = torch.linalg.cholesky(kernel)
        whitened = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
        return 0.5 * whitened.square().sum() + factor.diagonal().log().sum()

    return composed(forward, lambda: {"width": torch.zeros(())}), [normal(6, 2), normal(6, seed=4)]


@program
def kalman_filter() -> Any:
    def forward(self: Any, seen: torch.Tensor) -> torch.Tensor:
        mean, cov, total = torch.zeros(2, dtype=seen.dtype), torch.eye(2, dtype=seen.dtype), 0.0
        for z in seen:
            mean, cov = self.step @ mean, self.step @ cov @ self.step.T + 0.1 * torch.eye(2, dtype=seen.dtype)
            spread = cov + 0.2 * torch.eye(2, dtype=seen.dtype)
            gain = torch.linalg.solve(spread, cov).T
            total = total + torch.linalg.slogdet(spread)[1] + (z - mean) @ torch.linalg.solve(spread, z - mean)
            mean, cov = mean + gain @ (z - mean), cov - gain @ cov
        return total

    return composed(forward, lambda: {"step": torch.eye(2) + 0.1 * torch.randn(2, 2)}), [normal(3, 2)]


@program
def quantised_codebook() -> Any:
    """Straight-through estimator: the gradient of the looked-up code goes to the encoding."""

    def forward(self: Any, x: torch.Tensor) -> Any:
        z = self.encode(x)
        nearest = torch.cdist(z, self.codes).argmin(1)
        code = self.codes[nearest]
        commit = (z - code.detach()).square().mean() + (z.detach() - code).square().mean()
        return self.decode(z + (code - z).detach()), commit

    return composed(
        forward, lambda: {"encode": nn.Linear(4, 2), "codes": torch.randn(5, 2), "decode": nn.Linear(2, 4)}
    ), [normal(6, 4)]


@program
def actor_and_critic() -> Any:
    def forward(self: Any, seen: torch.Tensor, action: torch.Tensor, reward: torch.Tensor) -> Any:
        h = self.body(seen).tanh()
        value = self.critic(h).squeeze(1)
        with torch.no_grad():
            target = reward + 0.9 * value.roll(-1)
            advantage = target - value
        log = self.actor(h).log_softmax(1).gather(1, action[:, None]).squeeze(1)
        return -(log * advantage).mean(), F.mse_loss(value, target)

    return composed(forward, lambda: {"body": nn.Linear(3, 6), "critic": nn.Linear(6, 1), "actor": nn.Linear(6, 2)}), [
        normal(5, 3),
        torch.tensor([0, 1, 1, 0, 1]),
        normal(5),
    ]
