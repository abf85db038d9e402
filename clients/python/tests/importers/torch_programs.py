"""PyTorch programs, float64 modules with arguments: image networks, and networks with attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional as F

from clients.python.tests.importers.torch_made import normal, seeded

Program = Callable[[], tuple[nn.Module, Sequence[Any]]]
PROGRAMS: Final[dict[str, Program]] = {}


def program(make: Program) -> Program:
    """Register a program for the comparison."""
    PROGRAMS[make.__name__] = make
    return make


class Composed(nn.Module):
    """Layers by name, and a function that uses them."""

    def __init__(self, forward: Callable[..., Any], **layers: Any) -> None:
        super().__init__()
        self.run = forward
        for name, layer in layers.items():
            setattr(self, name, nn.Parameter(layer) if isinstance(layer, torch.Tensor) else layer)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(self, *args, **kwargs)


def composed(forward: Callable[..., Any], layers: Callable[[], dict[str, Any]]) -> nn.Module:
    return seeded(lambda: Composed(forward, **layers()))


def whole(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(3))


IMAGE = normal(3, 2, 8, 8)


@program
def perceptron() -> Any:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 2))), [
        normal(5, 4)
    ]


@program
def convolutional_net() -> Any:
    layers = lambda: nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3),
        nn.BatchNorm2d(6),
        nn.LeakyReLU(0.2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 3),
    )
    return seeded(layers), [IMAGE]


@program
def convolutional_net_in_evaluation() -> Any:
    layers = lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.AvgPool2d(2))
    return seeded(layers).eval(), [IMAGE]


class Block(nn.Module):
    """A residual block."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.down = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.down(x)
        return self.relu(y)


@program
def residual_net() -> Any:
    return seeded(lambda: nn.Sequential(Block(2, 4, 1), Block(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())), [IMAGE]


class UNet(nn.Module):
    """A U-Net with one skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, 2)
        self.out = nn.Conv2d(8, 1, 3, padding=1, padding_mode="reflect")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = F.silu(self.down(x))
        deep = F.silu(self.deep(F.max_pool2d(first, 2)))
        return self.out(torch.cat([first, self.up(deep)], 1)) + F.interpolate(
            deep[:, :1], scale_factor=2, mode="bilinear"
        )


@program
def u_net() -> Any:
    return seeded(UNet), [IMAGE]


@program
def depthwise_and_dilated() -> Any:
    layers = lambda: nn.Sequential(
        nn.Conv2d(2, 4, 3, dilation=2, padding="same"),
        nn.Conv2d(4, 4, 3, groups=4),
        nn.Hardswish(),
        nn.Conv2d(4, 2, 1),
        nn.PixelShuffle(1),
        nn.InstanceNorm2d(2, affine=True),
        nn.ReflectionPad2d(1),
        nn.ReplicationPad2d((1, 0, 0, 1)),
    )
    return seeded(layers), [IMAGE]


@program
def group_norm_and_resizing() -> Any:
    layers = lambda: nn.Sequential(
        nn.Conv2d(2, 6, 3),
        nn.GroupNorm(3, 6),
        nn.Mish(),
        nn.Upsample(scale_factor=2),
        nn.ZeroPad2d(1),
        nn.Conv2d(6, 1, 3),
    )
    return seeded(layers), [IMAGE]


@program
def signals() -> Any:
    layers = lambda: nn.Sequential(
        nn.Conv1d(3, 4, 3, padding=1),
        nn.BatchNorm1d(4),
        nn.ELU(),
        nn.AvgPool1d(2),
        nn.ConvTranspose1d(4, 2, 3, 2),
        nn.Softplus(),
    )
    return seeded(layers), [normal(2, 3, 8)]


@program
def volumes() -> Any:
    layers = lambda: nn.Sequential(
        nn.Conv3d(1, 3, 2), nn.BatchNorm3d(3), nn.ReLU6(), nn.MaxPool3d(2), nn.ConvTranspose3d(3, 1, 2)
    )
    return seeded(layers), [normal(2, 1, 5, 5, 5)]


@program
def patches_unfolded_and_folded() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return F.fold(self.mix(F.unfold(x, 3, padding=1).transpose(1, 2)).transpose(1, 2), (8, 8), 3, padding=1)

    return composed(forward, lambda: {"mix": nn.Linear(18, 18)}), [IMAGE]


@program
def spatial_transformer() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        theta = self.where(x.mean((2, 3))).view(-1, 2, 3) + torch.tensor([[1.0, 0, 0], [0, 1, 0]])
        return F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)

    return composed(forward, lambda: {"where": nn.Linear(2, 6)}), [IMAGE]


@program
def transformer_encoder() -> Any:
    build = lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation="gelu")
    return seeded(build), [normal(2, 5, 8)]


@program
def transformer_in_evaluation() -> Any:
    build = lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, batch_first=True), 2, enable_nested_tensor=False
    )
    return seeded(build).eval(), [normal(2, 5, 8)]


@program
def transformer_decoder() -> Any:
    build = lambda: nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return seeded(build), [normal(2, 4, 8), normal(2, 5, 8, seed=2)]


@program
def attention_with_a_mask() -> Any:
    def forward(self: Any, x: torch.Tensor, hidden: torch.Tensor) -> Any:
        return self.attend(x, x, x, key_padding_mask=hidden)

    return composed(forward, lambda: {"attend": nn.MultiheadAttention(8, 2, batch_first=True)}), [
        normal(2, 5, 8),
        torch.tensor([[False] * 5, [False, False, False, True, True]]),
    ]


class Rotary(nn.Module):
    """Causal attention with rotary positions and groups of heads that share keys."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8, False), nn.Linear(8, 4, False), nn.Linear(8, 4, False)
        self.norm = nn.RMSNorm(8)
        self.register_buffer("angles", torch.outer(torch.arange(6.0), 1 / 100 ** (torch.arange(2.0) / 2)))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        one, other = x.chunk(2, -1)
        cos, sin = self.angles[: x.shape[-2]].cos(), self.angles[: x.shape[-2]].sin()
        return torch.cat([one * cos - other * sin, one * sin + other * cos], -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        q, k, v = (each(h).unflatten(-1, (-1, 4)).transpose(1, 2) for each in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True, enable_gqa=True)
        return x + y.transpose(1, 2).flatten(2)


@program
def rotary_attention() -> Any:
    return seeded(Rotary), [normal(2, 5, 8)]


class Language(nn.Module):
    """A language model with tied first and last weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Parameter(torch.randn(6, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        mask = torch.full((length, length), -torch.inf, dtype=torch.float64).triu(1)
        h = self.block(self.tokens(ids) + self.places[:length], src_mask=mask, is_causal=True)
        return F.cross_entropy(self.head(h).flatten(0, 1), targets.flatten())


@program
def tied_language_model() -> Any:
    return seeded(Language), [whole(11, 2, 5), whole(11, 2, 5).flip(0)]


@program
def vision_transformer() -> Any:
    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.first.expand(h.shape[0], -1, -1), h], 1) + self.places
        return self.head(self.block(h)[:, 0])

    return composed(
        forward,
        lambda: {
            "patches": nn.Conv2d(2, 8, 4, 4),
            "first": torch.randn(1, 1, 8),
            "places": torch.randn(5, 8),
            "block": nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, batch_first=True),
            "head": nn.Linear(8, 3),
        },
    ), [IMAGE]
