"""Draw docs/guide/equal-eigenvalues.svg: what two losses are answered where eigenvalues are equal, and what is true.

The matrix is diag(2, 2, 1), turned by a rotation, so that rounding splits the two. The engine computes what is
answered; what is true follows from divided differences, without it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from engine import LATEST, Compiler, Limits, Program, Statement, TensorType, open_executor, registry

PICTURE = Path(__file__).parents[1] / "docs" / "guide" / "equal-eigenvalues.svg"
Array = np.ndarray[Any, Any]
#: the entries of a symmetric matrix
ENTRIES: Final = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
#: numbers that differ by less are the same
EXACT: Final = 1e-9
WIDTH, HEIGHT, PANEL, LEFT, STEP = 760, 400, 340, 50, 46
#: where 0 is drawn, what a unit takes, and the row of what is no number
ZERO, UNIT, MISSING = 170, 170, 318
#: what is off depends on which vectors of the plane LAPACK gives, and that on the processor: by less than this
BLUR: Final = 6
STYLE: Final = (
    "svg{color:#1a1a1a;background:#fff}text{font:13px sans-serif;fill:currentColor}.caption{font-weight:bold}"
    ".middle{text-anchor:middle}.end{text-anchor:end}.axis{stroke:#9a9a9a}.true{stroke:currentColor;stroke-width:3}"
    ".off{stroke:#c2410c;stroke-width:2}.whole{fill:#c2410c}.function{fill:none;stroke:#1d63b8;stroke-width:2}"
    "@media (prefers-color-scheme:dark){svg{color:#e6e6e6;background:#16181b}.axis{stroke:#6b6b6b}.off{stroke:#fb923c}"
    ".whole{fill:#fb923c}.function{stroke:#7ab8ff}}"
    "@media print{svg{color:#000;background:#fff}.axis{stroke:#777}}"
)


class Answers(NamedTuple):
    """The gradient of a loss that is true, and those that the engine gives, by the word or the op that asks for it."""

    title: str
    true: Array
    found: Mapping[str, Array]

    def miss(self, name: str) -> float:
        """The largest difference from what is true; NaN for what is no number."""
        return float(np.abs(self.found[name] - self.true).max())


def matrix() -> Array:
    """diag(2, 2, 1), turned."""
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    return np.asarray((q * [2.0, 2.0, 1.0]) @ q.T)


def weights() -> Array:
    """What the entries of a result are weighed by, symmetric."""
    drawn = np.random.default_rng(1).standard_normal((3, 3))
    return drawn + drawn.T


def answers() -> list[Answers]:
    """Of the projector on the plane of the two, and of v √w vᵀ."""
    words = ("nan", "whole")
    projectors = {word: _gradient(_projector(word)) for word in words}
    roots = {word: _gradient(_root_by_vectors(word)) for word in words}
    return [
        Answers("the projector on the plane of both", _true(_of_projector), projectors),
        Answers("v √w vᵀ", _true(_of_root), roots | {"symmetric_function": _gradient(_root())}),
    ]


def _true(differences: Callable[[Array, Array], Array]) -> Array:
    """By divided differences of a function of eigenvalues; W. L. Daleckii, M. G. Krein (1951)."""
    w, v = np.linalg.eigh(matrix())
    return np.asarray(v @ (differences(w[:, None], w) * (v.T @ weights() @ v)) @ v.T)


def _of_projector(a: Array, b: Array) -> Array:
    is_one_pair = (a > 1.5) == (b > 1.5)
    return np.where(is_one_pair, 0.0, 1 / np.where(is_one_pair, 1.0, np.abs(a - b)))


def _of_root(a: Array, b: Array) -> Array:
    return np.asarray(1 / (np.sqrt(a) + np.sqrt(b)))


def _gradient(nodes: Sequence[Statement]) -> Array:
    """Of the sum of the last node's entries, each with its weight, by the first node."""
    count, ops = len(nodes), registry()
    loss = [
        *nodes,
        Statement(ops.get("input")),
        Statement(ops.get("mul"), (count - 1, count)),
        Statement(ops.get("sum"), (count + 1,)),
    ]
    program = Program(ops, loss, opset=LATEST)
    fed: dict[Hashable, Array] = {0: matrix(), count: weights()}
    types = {0: TensorType.of(matrix()), count: TensorType.of(weights())}
    plan = Compiler(Limits()).gradients(program, types).plan
    *_, gradient = open_executor("cpu", compile="off").run(plan, fed)
    return np.asarray(gradient)


def _vectors(degenerate: str) -> list[Statement]:
    """Nodes 2 and 3 are eigenvalues and vectors."""
    ops = registry()
    return [
        Statement(ops.get("parameter")),
        Statement(ops.get("eigh"), (0,), {"degenerate": degenerate}),
        Statement(ops.get("get_output"), (1,), {"index": 0}),
        Statement(ops.get("get_output"), (1,), {"index": 1}),
    ]


def _projector(degenerate: str) -> list[Statement]:
    ops = registry()
    return [
        *_vectors(degenerate),
        Statement(ops.get("slice"), (3,), {"starts": [0, 1], "stops": [3, 3]}),
        Statement(ops.get("transpose"), (4,)),
        Statement(ops.get("matmul"), (4, 5)),
    ]


def _root_by_vectors(degenerate: str) -> list[Statement]:
    ops = registry()
    return [
        *_vectors(degenerate),
        Statement(ops.get("sqrt"), (2,)),
        Statement(ops.get("mul"), (3, 4)),
        Statement(ops.get("transpose"), (3,)),
        Statement(ops.get("matmul"), (5, 6)),
    ]


def _root() -> list[Statement]:
    ops = registry()
    return [Statement(ops.get("parameter")), Statement(ops.get("symmetric_function"), (0,), {"function": "sqrt"})]


def drawn(panels: Sequence[Answers]) -> str:
    """The picture as SVG, the same bytes for the same answers."""
    title, box = "Gradients at equal eigenvalues: what is true, and what is answered", f"0 0 {WIDTH} {HEIGHT}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-labelledby="name about">',
        f'<title id="name">{title}</title>',
        f'<desc id="about">{escape(" ".join(_told(panels)))}</desc>',
        f"<style>{STYLE}</style>",
    ]
    for i, each in enumerate(panels):
        lines += _panel(each, LEFT + i * (PANEL + 30))
    return "\n".join([*lines, *_legend(), "</svg>", ""])


def _told(panels: Sequence[Answers]) -> Iterator[str]:
    """What is to be seen, in words."""
    yield "The gradient by the six entries of the matrix diag(2, 2, 1), turned by a rotation."
    for each in panels:
        verdicts = [f"{name} is {_verdict(each, name)}" for name in each.found]
        yield f"Of {each.title}: {', '.join(verdicts)}."


def _verdict(each: Answers, name: str) -> str:
    miss = each.miss(name)
    if np.isnan(miss):
        return "NaN"
    return "exact" if miss < EXACT else f"off by up to {miss:.1f}"


def _panel(each: Answers, left: int) -> Iterator[str]:
    right = left + STEP * len(ENTRIES)
    yield f'<text class="caption" x="{left}" y="28">gradient of {escape(each.title)}</text>'
    for value in ("−0.5", "0", "0.5"):
        y = _height(float(value.replace("−", "-")))
        yield f'<path class="axis" d="M{left} {y}H{right}"/><text class="end" x="{left - 8}" y="{y + 4}">{value}</text>'
    yield f'<text class="end" x="{left - 8}" y="{MISSING}">nan</text>'
    for k, (row, column) in enumerate(ENTRIES):
        x = left + STEP * k + STEP // 2
        yield f'<text class="middle" x="{x}" y="{MISSING + 30}">x{row + 1}{column + 1}</text>'
        yield from _entry(each, (row, column), x)


def _entry(each: Answers, at: tuple[int, int], x: int) -> Iterator[str]:
    """The true slope as a bar, what is answered as signs, and a line from one to the other where they differ."""
    true, answered = _height(each.true[at]), each.found["whole"][at]
    whole = true if abs(answered - each.true[at]) < EXACT else BLUR * round(_height(answered) / BLUR)
    if np.isnan(each.found["nan"][at]):
        yield f'<text class="middle" x="{x}" y="{MISSING}">NaN</text>'
    if whole != true:
        yield f'<path class="off" d="M{x} {true}V{whole}"/>'
    yield f'<path class="true" d="M{x - 15} {true}H{x + 15}"/>'
    yield f'<circle class="whole" cx="{x}" cy="{whole}" r="5"/>'
    if "symmetric_function" in each.found:
        y = _height(each.found["symmetric_function"][at])
        yield f'<path class="function" d="M{x} {y - 9}L{x + 9} {y}L{x} {y + 9}L{x - 9} {y}Z"/>'


def _height(value: float) -> int:
    return round(ZERO - UNIT * float(value))


def _legend() -> Iterator[str]:
    y = HEIGHT - 18
    yield f'<path class="true" d="M{LEFT} {y}h30"/><text x="{LEFT + 38}" y="{y + 4}">true</text>'
    yield f'<circle class="whole" cx="{LEFT + 105}" cy="{y}" r="5"/><text x="{LEFT + 118}" y="{y + 4}">whole</text>'
    yield f'<path class="function" d="M{LEFT + 190} {y - 9}l9 9l-9 9l-9 -9Z"/>'
    yield f'<text x="{LEFT + 208}" y="{y + 4}">symmetric_function</text>'
    yield f'<text x="{LEFT + 360}" y="{y + 4}">nan, the default: no number</text>'


def picture() -> str:
    """The picture of today's answers."""
    return drawn(answers())


def main() -> None:
    """Draw it."""
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"wrote {PICTURE.name}")


if __name__ == "__main__":
    main()
