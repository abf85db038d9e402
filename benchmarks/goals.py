"""What was aimed at: for each workload, by which peer's time ours is divided, and how large the ratio may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.problems.layers import LAYERS

#: value and all gradients; values alone
WAYS: Final = ("", "-values")
LOOPS: Final = {
    "rk4-pair": (0.10, 0.8),
    "euler": (1.0, 1.0),
    "rk4-network": (0.25, 0.7),
    "lstm-64": (0.45, 0.9),
    "adaptive": (0.04, 1.1),
    "lstm-32": (0.25, 0.5),
    "rk4-million": (0.10,),
    "hmc": (0.5,),
}
#: by which peer's time each row is divided, both ways
OPSET_2: Final = {
    "fourier-layer": {"torch": 1.1, "jax": 1.0},
    "stft-loss": {"torch": 1.1},
    "complex-chain": {"torch": 0.3},
    "complex-product": {"torch": 1.1},
    **{f"{op}-{side}": {"jax": 1.1} for op in ("eigh", "svd", "qr") for side in (64, 512)},
    "matrix_exp": {"jax": 0.8},
    "index": {"torch": 1.0},
    "index_add": {"torch": 1.0},
}

#: planning a loop's gradient, beside that of its step
LOOP_OVER_BODY: Final = 2.5


def _of_layer(name: str) -> float:
    if name.startswith("depthwise"):
        return 0.5
    return 1.15 if name.startswith("256-256") else 1.0


GOALS: Final[dict[str, dict[str, float]]] = {
    "W1": {"jax": 0.5},
    "W1-0d": {"jax": 0.5},
    "W2": {"torch": 0.75, "jax": 0.7},
    "W3": {"torch.compile": 0.2},
    "W3-numpy": {"torch.compile": 0.8},
    "W4": {"torch": 0.75, "torch.compile": 0.85},
    "W4n": {"torch": 0.9, "torch.compile": 0.9},
    "W5": {"torch": 0.3},
    "W5-numpy": {"torch": 1.6},
    "W6": {"jax": 0.5},
    "softmax": {"torch.compile": 0.9},
    "layer_norm": {"torch.compile": 0.9},
    "gelu": {"torch.compile": 0.9},
    "bias-relu": {"torch.compile": 1.05},
    **{f"{name}{way}": {"jax": goal} for name, goals in LOOPS.items() for way, goal in zip(WAYS, goals, strict=False)},
    **{f"{name}{way}": goals for name, goals in OPSET_2.items() for way in WAYS},
    **{name: {"torch": _of_layer(name)} for name in LAYERS},
    **{name: dict.fromkeys(("torch", "torch.compile", "jax"), 1.0) for name in ("gmm", "ba", "lstm", "hand")},
}

#: of less exact numbers, which tensor cores multiply
_IN_LESS: Final = {"torch": 1.0, "torch.compile": 1.2, "jax": 1.2}
#: on a card, all sides in float32, where the name says nothing else
CARD_GOALS: Final[dict[str, dict[str, float]]] = {
    "W1": {"torch": 0.1, "jax": 0.5},
    "W2": {"torch": 0.4, "torch.compile": 1.0, "jax": 1.0},
    "W3": {"torch": 0.2, "jax": 0.8},
    "W4": {"torch": 0.3, "torch.compile": 1.0, "jax": 1.0},
    "W4n": {"torch": 0.5, "torch.compile": 1.0, "jax": 1.0},
    "W5": {"torch": 0.8, "torch.compile": 1.0, "jax": 1.2},
    "W6": {"torch": 0.01, "jax": 0.5},
    "N1": {"torch": 1.0, "torch.compile": 1.0, "jax": 1.2},
    "N2": {"torch": 0.7, "torch.compile": 1.0, "jax": 1.0},
    **dict.fromkeys(("N1-tf32", "N2-tf32", "N2-half"), _IN_LESS),
}
#: and by itself, in milliseconds
CARD_MILLISECONDS: Final = {"W1-host": 0.08}


def card_verdict(name: str, row: Mapping[str, Any]) -> str:
    """As `verdict`, of a row that was measured on a card, whose goal may be a time."""
    ours, most = row["sides"]["gradserve"]["median"], CARD_MILLISECONDS.get(name)
    if most is None:
        return verdict(name, row, CARD_GOALS)
    return f"met: {most:g} ms" if ours <= most else f"missed: {ours:.3f} ms > {most:g} ms"


def verdict(name: str, row: Mapping[str, Any], goals_by_name: Mapping[str, Mapping[str, float]] = GOALS) -> str:
    """“met”, or for each goal that is not by how much: what it was, and what was reached. Empty where there is none.

    A peer that could not be asked sets no goal; where none of them could, the goal was not measured.
    """
    goals = goals_by_name.get(name, {})
    reached = {peer: side["ratio"] for peer, side in row.get("sides", {}).items() if peer in goals}
    if goals and not reached:
        return "not measured"
    missed = [f"{peer} {ratio:.2f} > {goals[peer]:g}" for peer, ratio in reached.items() if ratio > goals[peer]]
    return "missed: " + ", ".join(missed) if missed else "met" * bool(goals)
