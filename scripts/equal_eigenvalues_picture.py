"""Draw docs/guide/equal-eigenvalues.svg: two losses' computed and true gradients at equal eigenvalues.

The matrix is diag(2, 2, 1), rotated, so that rounding separates the equal eigenvalues. The engine computes the answers;
the true gradients follow from divided differences, without it.
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
#: positions of the entries of a symmetric matrix
ENTRIES: Final = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
#: numbers that differ by less count as equal
EXACT: Final = 1e-9
WIDTH, HEIGHT, PANEL, LEFT, STEP = 760, 400, 340, 50, 46
#: y of 0, height of a unit, and y of NaN
ZERO, UNIT, MISSING = 170, 170, 318
#: pixels to which wrong answers are rounded: they depend on LAPACK's choice of eigenvectors, which varies by processor
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
    """The true gradient of a loss, and those that the engine computes, by the option or op that requests them."""

    title: str
    true: Array
    computed: Mapping[str, Array]

    def miss(self, name: str) -> float:
        """Return the largest difference from the true gradient, NaN if an entry is NaN."""
        return float(np.abs(self.computed[name] - self.true).max())


def matrix() -> Array:
    """Return diag(2, 2, 1), rotated."""
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))
    return np.asarray((q * [2.0, 2.0, 1.0]) @ q.T)


def weights() -> Array:
    """Return the symmetric weights of a result's entries."""
    drawn = np.random.default_rng(1).standard_normal((3, 3))
    return drawn + drawn.T


def answers() -> list[Answers]:
    """Return the answers for the projector on the plane of the two, and for v √w vᵀ."""
    words = ("nan", "whole")
    projectors = {word: _gradient(_projector(word)) for word in words}
    roots = {word: _gradient(_root_by_vectors(word)) for word in words}
    return [
        Answers("the projector on the plane of both", _true(_of_projector), projectors),
        Answers("v √w vᵀ", _true(_of_root), roots | {"symmetric_function": _gradient(_root())}),
    ]


def _true(differences: Callable[[Array, Array], Array]) -> Array:
    """Compute the gradient by divided differences of a function of eigenvalues; W. L. Daleckii, M. G. Krein (1951)."""
    w, v = np.linalg.eigh(matrix())
    return np.asarray(v @ (differences(w[:, None], w) * (v.T @ weights() @ v)) @ v.T)


def _of_projector(a: Array, b: Array) -> Array:
    is_one_pair = (a > 1.5) == (b > 1.5)
    return np.where(is_one_pair, 0.0, 1 / np.where(is_one_pair, 1.0, np.abs(a - b)))


def _of_root(a: Array, b: Array) -> Array:
    return np.asarray(1 / (np.sqrt(a) + np.sqrt(b)))


def _gradient(nodes: Sequence[Statement]) -> Array:
    """Return the gradient of the weighted sum of the last node's entries with respect to the first node."""
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
    """Return nodes of which 2 and 3 are the eigenvalues and eigenvectors."""
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
    """Return the picture as SVG, with the same bytes for the same answers."""
    title, box = "Gradients at equal eigenvalues: what is true, and what is answered", f"0 0 {WIDTH} {HEIGHT}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-labelledby="name about">',
        f'<title id="name">{title}</title>',
        f'<desc id="about">{escape(" ".join(_description(panels)))}</desc>',
        f"<style>{STYLE}</style>",
    ]
    for i, each in enumerate(panels):
        lines += _panel(each, LEFT + i * (PANEL + 30))
    return "\n".join([*lines, *_legend(), "</svg>", ""])


def _description(panels: Sequence[Answers]) -> Iterator[str]:
    """Yield the content of the picture in words."""
    yield "The gradient by the six entries of the matrix diag(2, 2, 1), turned by a rotation."
    for each in panels:
        verdicts = [f"{name} is {_verdict(each, name)}" for name in each.computed]
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


def _entry(each: Answers, entry: tuple[int, int], x: int) -> Iterator[str]:
    """Yield the true value as a bar, the computed ones as symbols, and a line between them if they differ."""
    true, answered = _height(each.true[entry]), each.computed["whole"][entry]
    whole = true if abs(answered - each.true[entry]) < EXACT else BLUR * round(_height(answered) / BLUR)
    if np.isnan(each.computed["nan"][entry]):
        yield f'<text class="middle" x="{x}" y="{MISSING}">NaN</text>'
    if whole != true:
        yield f'<path class="off" d="M{x} {true}V{whole}"/>'
    yield f'<path class="true" d="M{x - 15} {true}H{x + 15}"/>'
    yield f'<circle class="whole" cx="{x}" cy="{whole}" r="5"/>'
    if "symmetric_function" in each.computed:
        y = _height(each.computed["symmetric_function"][entry])
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
    """Return the picture of the current answers."""
    return drawn(answers())


def main() -> None:
    """Draw the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"wrote {PICTURE.name}")


if __name__ == "__main__":
    main()
