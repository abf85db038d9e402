"""RNN, GRU and LSTM as scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradserve_client.graph import Graph, Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import outputs_of
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.families.unsupported import RANDOM

#: computes the new state: (gates of the input, state, weights of the step, width)
Cell = Callable[[Node, Sequence[Node], Sequence[Node], int], Sequence[Node]]


@dataclass(frozen=True)
class _Weights:
    """Weights of one layer in one direction. `projection` is that of an LSTM's output."""

    ih: Node
    hh: Node
    ih_bias: Node | None
    hh_bias: Node | None
    projection: Node | None = None


def _gates(x: Node, weight: Node, bias: Node | None) -> Node:
    return x.matmul(weight.transpose()) if bias is None else x.mlp_layer(weight, bias)


def _lstm(input_gates: Node, state: Sequence[Node], weights: Sequence[Node], width: int) -> Sequence[Node]:
    hidden, cell = state
    gates = input_gates.add(hidden.matmul(weights[0]))
    input_gate, forget_gate, candidate, output_gate = outputs_of(gates.split([width] * 4, axis=1), 4)
    cell = forget_gate.sigmoid().mul(cell).add(input_gate.sigmoid().mul(candidate.tanh()))
    hidden = output_gate.sigmoid().mul(cell.tanh())
    return [hidden.matmul(weights[1]) if len(weights) > 1 else hidden, cell]


def _gru(input_gates: Node, state: Sequence[Node], weights: Sequence[Node], width: int) -> Sequence[Node]:
    (hidden,) = state
    total = hidden.matmul(weights[0])
    total = total.add(weights[1]) if len(weights) > 1 else total
    reset, update, new = outputs_of(input_gates.split([width] * 3, axis=1), 3)
    hidden_gates = outputs_of(total.split([width] * 3, axis=1), 3)
    update_gate = update.add(hidden_gates[1]).sigmoid()
    candidate = new.add(reset.add(hidden_gates[0]).sigmoid().mul(hidden_gates[2])).tanh()
    return [update_gate.mul(hidden.sub(candidate)).add(candidate)]


def _rnn(activation: str) -> Cell:
    def cell(input_gates: Node, state: Sequence[Node], weights: Sequence[Node], width: int) -> Sequence[Node]:
        del width
        return [input_gates.graph.op(activation, input_gates.add(state[0].matmul(weights[0])))]

    return cell


@RULES("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
def recurrent(call: Call) -> Results:
    """Write one `scan` per layer and direction. The gates of all inputs are computed by one product before the scan."""
    if call["train"] and call["dropout"] and call["num_layers"] > 1:
        raise Blocked(f"its dropout between layers is random; {RANDOM[0]}", "call module.eval(), or set it to 0")
    kind = call.op.partition(".")[0]
    cell = {"lstm": _lstm, "gru": _gru}.get(kind) or _rnn(kind.removeprefix("rnn_"))
    directions = 2 if call["bidirectional"] else 1
    x = call.node("input")
    x = x.transpose(axes=[1, 0, 2]) if call["batch_first"] else x
    starts = [each.node_in(call.graph) for each in (call["hx"] if kind == "lstm" else [call["hx"]])]
    last_states: list[list[Node]] = []
    for layer, group in enumerate(_layers(call, kind, directions)):
        outputs = []
        for direction, weights in enumerate(group):
            state = [each.select(layer * directions + direction) for each in starts]
            width = call["params"][layer * directions * (len(call["params"]) // (directions * call["num_layers"]))]
            outputs_of_scan = _scan(call, cell, x, state, weights, kind, width.type.shape[0], direction == 1)
            last_states.append(outputs_of_scan[:-1])
            outputs.append(outputs_of_scan[-1])
        x = outputs[0] if directions == 1 else call.graph.cat(*outputs, axis=2)
    y = x.transpose(axes=[1, 0, 2]) if call["batch_first"] else x
    return [y, *(call.graph.stack(*each, axis=0) for each in zip(*last_states, strict=True))]


def _layers(call: Call, kind: str, directions: int) -> list[list[_Weights]]:
    """Return the weights by layer and direction."""
    params = [each.node_in(call.graph) for each in call["params"]]
    count = len(params) // (directions * call["num_layers"])
    weights = []
    for i in range(0, len(params), count):
        ih, hh, *rest = params[i : i + count]
        ih_bias, hh_bias = rest[:2] if call["has_biases"] else (None, None)
        projection = rest[-1] if kind == "lstm" and len(rest) % 2 else None
        weights.append(_Weights(ih, hh, ih_bias, hh_bias, projection))
    return [weights[i : i + directions] for i in range(0, len(weights), directions)]


def _scan(
    call: Call,
    cell: Cell,
    x: Node,
    state: Sequence[Node],
    weights: _Weights,
    kind: str,
    rows: int,
    reverse: bool,
) -> list[Node]:
    """Write the scan. Return the last states, and the outputs of all steps."""
    width = rows // {"lstm": 4, "gru": 3}.get(kind, 1)
    bias = weights.ih_bias
    step_weights = [weights.hh.transpose()]
    # biases are added before the scan, except a GRU's hidden bias, which the reset gate multiplies
    if kind == "gru" and weights.hh_bias is not None:
        step_weights.append(weights.hh_bias)
    elif bias is not None and weights.hh_bias is not None:
        bias = bias.add(weights.hh_bias)
    if weights.projection is not None:
        step_weights.append(weights.projection.transpose())
    gates = _gates(x, weights.ih, bias)

    def body(graph: Graph) -> Sequence[Node]:
        consts = [graph.input() for _ in step_weights]
        carried = [graph.input() for _ in state]
        new_state = cell(graph.input(), carried, consts, width)
        return [*new_state, new_state[0]]

    scan = call.graph.scan(
        *step_weights,
        *state,
        gates,
        body=call.graph.function(body),
        carries=len(state),
        sequences=1,
        reverse=True if reverse else None,
    )
    return outputs_of(scan, len(state) + 1)
