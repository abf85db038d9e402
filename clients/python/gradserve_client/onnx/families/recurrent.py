"""RNN, GRU and LSTM as scans.

Each direction is one scan. Its sequence is the contribution of the operand to all gates, computed for all steps by one
matrix product before the scan. The recurrent weights are consts of the body, and the states are its carries. If the
operand has lengths, a counter is a second sequence, and steps beyond the length keep the states and output zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradserve_client.graph import Graph, Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import TO_THE_END
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.table import RULES

Activation = Callable[[Node], Node]
#: one step of a cell: takes the cell, the graph, the consts (recurrent weights first), the operand's contribution to
#: the gates, and the states; returns the next states, the first of which is the output
Step = Callable[["Cell", Graph, Sequence[Node], Node, Sequence[Node]], Sequence[Node]]

#: activations by name: a function of a node, alpha and beta, with the defaults of alpha and beta
_ACTIVATIONS: dict[str, tuple[Callable[[Node, float, float], Node], float | None, float | None]] = {
    "relu": (lambda x, a, b: x.relu(), None, None),
    "tanh": (lambda x, a, b: x.tanh(), None, None),
    "sigmoid": (lambda x, a, b: x.sigmoid(), None, None),
    "softsign": (lambda x, a, b: x.div(x.abs().add_scalar(1.0)), None, None),
    "softplus": (lambda x, a, b: x.softplus(), None, None),
    "leakyrelu": (lambda x, a, b: x.leaky_relu(alpha=a), 0.01, None),
    "elu": (lambda x, a, b: x.elu(alpha=a), 1.0, None),
    "affine": (lambda x, a, b: x.mul_scalar(a).add_scalar(b), 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: x.mul_scalar(b).tanh().mul_scalar(a), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: x.mul_scalar(a).add_scalar(b).clamp(min=0.0, max=1.0), 0.2, 0.5),
}


@dataclass(frozen=True)
class Cell:
    """Parameters that all steps of one direction share."""

    call: Call
    direction: int
    gates: int
    activations: Sequence[Activation]

    @property
    def hidden(self) -> int:
        """Size of the state."""
        return self.call.shape(2)[-1]

    def weights(self, i: int) -> Node:
        """Return operand i for this direction."""
        return self.call.node(i).select(self.direction)

    def clipped(self, node: Node) -> Node:
        """Clip the input of an activation."""
        clip = self.call.attrs.get("clip")
        return node if clip is None else node.clamp(min=-clip, max=clip)


def _activations(call: Call, direction: int, defaults: Sequence[str]) -> list[Activation]:
    """Return the activations of a direction.

    Stated alphas and betas go, in order, to the activations that have them.
    """
    stated = [each.decode() if isinstance(each, bytes) else each for each in call.attrs.get("activations") or []]
    directions = call.shape(1)[0]
    names = stated if len(stated) == directions * len(defaults) else [*defaults] * directions
    alphas, betas = ([*(call.attrs.get(name) or [])] for name in ("activation_alpha", "activation_beta"))
    activations: list[Activation] = []
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise Blocked(f"its activation {name} has no rule")
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        a = alphas.pop(0) if alpha is not None and alphas else alpha
        b = betas.pop(0) if beta is not None and betas else beta
        activations.append(_bound(function, a or 0.0, b or 0.0))
    return activations[direction * len(defaults) : (direction + 1) * len(defaults)]


def _bound(function: Callable[[Node, float, float], Node], a: float, b: float) -> Activation:
    return lambda x: function(x, a, b)


def _recurrent(
    call: Call, gates: int, states: Sequence[int], defaults: Sequence[str], consts: Any, step: Step
) -> RuleResult:
    """Run all directions and stack their results. `states` are the operands with the initial states."""
    layout = call.attrs.get("layout", 0)
    direction = call.text("direction")
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    each = [
        _direction(Cell(call, i, gates, _activations(call, i, defaults)), backwards, states, consts, step)
        for i, backwards in enumerate(directions)
    ]
    stacks, *lasts = zip(*each, strict=True)
    y = call.graph.stack(*stacks, axis=1)
    finals = [call.graph.stack(*last, axis=0) for last in lasts]
    if not layout:
        return [y, *finals]
    return [y.transpose(axes=[2, 0, 1, 3]), *(final.transpose(axes=[1, 0, 2]) for final in finals)]


def _direction(cell: Cell, backwards: bool, states: Sequence[int], consts: Any, step: Step) -> list[Node]:
    """Return the outputs of all steps, and the final states."""
    call = cell.call
    x = call.node().transpose(axes=[1, 0, 2]) if call.attrs.get("layout", 0) else call.node()
    steps, batch = (call.shape()[1], call.shape()[0]) if call.attrs.get("layout", 0) else call.shape()[:2]
    contribution = x.matmul(cell.weights(1).transpose())
    consts_of_scan = [cell.weights(2).transpose(), *consts(cell)]
    bias = _bias(cell, consts)
    contribution = contribution if bias is None else contribution.add(bias)
    initial = [_initial_state(cell, i, batch) for i in states]
    sequences = [contribution]
    if call.has(4):
        consts_of_scan.append(call.node(4).cast("int64").reshape(shape=[batch, 1]))
        sequences.append(call.constant(np.arange(steps), np.int64))
    body = call.graph.function(_body(cell, len(consts_of_scan), len(states), step), call.op.lower())
    result = call.graph.scan(
        *consts_of_scan,
        *initial,
        *sequences,
        body=body,
        carries=len(states),
        sequences=len(sequences),
        reverse=backwards or None,
    )
    return [result.get_output(len(states)), *(result.get_output(i) for i in range(len(states)))]


def _bias(cell: Cell, consts: Any) -> Node | None:
    """Return the sum of both biases of the gates.

    The recurrent bias of a GRU's new state is left out, because the reset gate may apply to it.
    """
    if not cell.call.has(3):
        return None
    bias, width = cell.weights(3), cell.gates * cell.hidden
    operand_bias, recurrent = bias.slice(stops=[width]), bias.slice(starts=[width])
    if consts is _gru_consts:
        recurrent = recurrent.slice(stops=[2 * cell.hidden]).pad([0, cell.hidden])
    return operand_bias.add(recurrent)


def _initial_state(cell: Cell, i: int, batch: int) -> Node:
    call = cell.call
    if not call.has(i):
        return call.constant(np.zeros((batch, cell.hidden)), call.dtype())
    return call.node(i).select(cell.direction, axis=1 if call.attrs.get("layout", 0) else 0)


def _body(cell: Cell, consts: int, states: int, step: Step) -> Callable[[Graph], Sequence[Node]]:
    """Return the body of the scan. Steps beyond a sequence's length keep the states and output zeros."""
    lengths = cell.call.has(4)

    def write(graph: Graph) -> Sequence[Node]:
        consts_of_body = [graph.input() for _ in range(consts)]
        before = [graph.input() for _ in range(states)]
        x = graph.input()
        step_consts = consts_of_body[:-1] if lengths else consts_of_body
        after = [*step(cell, graph, step_consts, x, before)]
        if not lengths:
            return [*after, after[0]]
        running = graph.input().less(consts_of_body[-1])
        zero = graph.constant(np.zeros((), cell.call.dtype()))
        next_states = [running.where(new, old) for new, old in zip(after, before, strict=True)]
        return [*next_states, running.where(after[0], zero)]

    return write


def _no_consts(cell: Cell) -> list[Node]:
    return []


@RULES("RNN", since=7)
def rnn(call: Call) -> RuleResult:
    """Compute h = f(x Wᵀ + h Rᵀ + b)."""

    def step(cell: Cell, graph: Graph, consts: Sequence[Node], x: Node, states: Sequence[Node]) -> Sequence[Node]:
        return [cell.activations[0](cell.clipped(x.add(states[0].matmul(consts[0]))))]

    return _recurrent(call, 1, (5,), ("Tanh",), _no_consts, step)


def _gru_consts(cell: Cell) -> list[Node]:
    """Return the recurrent bias of the new state."""
    if not cell.call.has(3):
        return [cell.call.constant(np.zeros(cell.hidden), cell.call.dtype())]
    return [cell.weights(3).slice(starts=[5 * cell.hidden])]


@RULES("GRU", since=7)
def gru(call: Call) -> RuleResult:
    """Compute h = (1 − z) · n + z · h; K. Cho et al. (2014). The reset applies before or after the product."""
    after_product = bool(call.attrs["linear_before_reset"])

    def step(cell: Cell, graph: Graph, consts: Sequence[Node], x: Node, states: Sequence[Node]) -> Sequence[Node]:
        f, g = cell.activations
        weights, bias = consts
        h, hidden = states[0], cell.hidden
        gate_weights = weights.slice(stops=[hidden, 2 * hidden])
        gates = f(cell.clipped(x.slice(stops=[TO_THE_END, 2 * hidden]).add(h.matmul(gate_weights))))
        z, r = (gates.slice(starts=[0, i * hidden], stops=[TO_THE_END, (i + 1) * hidden]) for i in range(2))
        new_weights, new_input = weights.slice(starts=[0, 2 * hidden]), x.slice(starts=[0, 2 * hidden])
        if after_product:
            inner = new_input.add(r.mul(h.matmul(new_weights).add(bias)))
        else:
            inner = new_input.add(r.mul(h).matmul(new_weights)).add(bias)
        n = g(cell.clipped(inner))
        return [n.sub(z.mul(n)).add(z.mul(h))]

    return _recurrent(call, 3, (5,), ("Sigmoid", "Tanh"), _gru_consts, step)


def _lstm_consts(cell: Cell) -> list[Node]:
    """Return the peepholes of the input, output and forget gates, if there are any."""
    if not cell.call.has(7):
        return []
    peepholes = cell.weights(7)
    return [peepholes.slice(starts=[i * cell.hidden], stops=[(i + 1) * cell.hidden]) for i in range(3)]


@RULES("LSTM", since=7)
def lstm(call: Call) -> RuleResult:
    """Compute c = f · c + i · g, h = o · tanh c; S. Hochreiter, J. Schmidhuber (1997), with peepholes."""
    coupled = bool(call.attrs["input_forget"])

    def step(cell: Cell, graph: Graph, consts: Sequence[Node], x: Node, states: Sequence[Node]) -> Sequence[Node]:
        f, g, output = cell.activations
        weights, *peepholes = consts
        (h, c), hidden = states, cell.hidden
        gates = x.add(h.matmul(weights))
        i, o, forget, new = (
            gates.slice(starts=[0, k * hidden], stops=[TO_THE_END, (k + 1) * hidden]) for k in range(4)
        )
        i = f(cell.clipped(i.add(peepholes[0].mul(c)) if peepholes else i))
        if coupled:
            forget = i.neg().add_scalar(1.0)
        else:
            forget = f(cell.clipped(forget.add(peepholes[2].mul(c)) if peepholes else forget))
        c = forget.mul(c).add(i.mul(g(cell.clipped(new))))
        o = f(cell.clipped(o.add(peepholes[1].mul(c)) if peepholes else o))
        return [o.mul(output(c)), c]

    return _recurrent(call, 4, (5, 6), ("Sigmoid", "Tanh", "Tanh"), _lstm_consts, step)
