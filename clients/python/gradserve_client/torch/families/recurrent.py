"""RNN, GRU and LSTM as scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradserve_client.graph import Graph, Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import several
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.refused import RANDOM
from gradserve_client.torch.families.table import RULES

#: the new state, of what the input adds to the gates, of the state, and of the weights that are read at each step
Cell = Callable[[Node, Sequence[Node], Sequence[Node], int], Sequence[Node]]


@dataclass(frozen=True)
class _Weights:
    """Those of one layer in one direction. `back` projects what an LSTM gives."""

    ih: Node
    hh: Node
    ih_bias: Node | None
    hh_bias: Node | None
    back: Node | None = None


def _gates(x: Node, weight: Node, bias: Node | None) -> Node:
    return x.matmul(weight.transpose()) if bias is None else x.mlp_layer(weight, bias)


def _lstm(given: Node, state: Sequence[Node], weights: Sequence[Node], width: int) -> Sequence[Node]:
    hidden, cell = state
    total = given.add(hidden.matmul(weights[0]))
    into, keep, new, out = several(total.split([width] * 4, axis=1), 4)
    cell = keep.sigmoid().mul(cell).add(into.sigmoid().mul(new.tanh()))
    hidden = out.sigmoid().mul(cell.tanh())
    return [hidden.matmul(weights[1]) if len(weights) > 1 else hidden, cell]


def _gru(given: Node, state: Sequence[Node], weights: Sequence[Node], width: int) -> Sequence[Node]:
    (hidden,) = state
    total = hidden.matmul(weights[0])
    total = total.add(weights[1]) if len(weights) > 1 else total
    reset, update, new = several(given.split([width] * 3, axis=1), 3)
    own = several(total.split([width] * 3, axis=1), 3)
    gate = update.add(own[1]).sigmoid()
    fresh = new.add(reset.add(own[0]).sigmoid().mul(own[2])).tanh()
    return [gate.mul(hidden.sub(fresh)).add(fresh)]


def _plain(activation: str) -> Cell:
    def cell(given: Node, state: Sequence[Node], weights: Sequence[Node], width: int) -> Sequence[Node]:
        del width
        return [given.graph.op(activation, given.add(state[0].matmul(weights[0])))]

    return cell


@RULES("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
def recurrent(call: Call) -> Said:
    """Layer by layer, one scan for each direction; all inputs' gates are computed at once before."""
    if call["train"] and call["dropout"] and call["num_layers"] > 1:
        raise Blocked(f"its dropout between layers is random; {RANDOM[0]}", "call module.eval(), or set it to 0")
    kind = call.op.partition(".")[0]
    cell = {"lstm": _lstm, "gru": _gru}.get(kind) or _plain(kind.removeprefix("rnn_"))
    directions = 2 if call["bidirectional"] else 1
    x = call.node("input")
    x = x.transpose(axes=[1, 0, 2]) if call["batch_first"] else x
    starts = [each.given_by(call.graph) for each in (call["hx"] if kind == "lstm" else [call["hx"]])]
    lasts: list[list[Node]] = []
    for layer, group in enumerate(_layers(call, kind, directions)):
        outputs = []
        for direction, weights in enumerate(group):
            state = [each.select(layer * directions + direction) for each in starts]
            width = call["params"][layer * directions * (len(call["params"]) // (directions * call["num_layers"]))]
            made = _scanned(call, cell, x, state, weights, kind, width.type.shape[0], direction == 1)
            lasts.append(made[:-1])
            outputs.append(made[-1])
        x = outputs[0] if directions == 1 else call.graph.cat(*outputs, axis=2)
    y = x.transpose(axes=[1, 0, 2]) if call["batch_first"] else x
    return [y, *(call.graph.stack(*each, axis=0) for each in zip(*lasts, strict=True))]


def _layers(call: Call, kind: str, directions: int) -> list[list[_Weights]]:
    """The weights by layer and direction."""
    params = [each.given_by(call.graph) for each in call["params"]]
    count = len(params) // (directions * call["num_layers"])
    found = []
    for i in range(0, len(params), count):
        ih, hh, *more = params[i : i + count]
        ih_bias, hh_bias = more[:2] if call["has_biases"] else (None, None)
        back = more[-1] if kind == "lstm" and len(more) % 2 else None
        found.append(_Weights(ih, hh, ih_bias, hh_bias, back))
    return [found[i : i + directions] for i in range(0, len(found), directions)]


def _scanned(
    call: Call,
    cell: Cell,
    x: Node,
    state: Sequence[Node],
    weights: _Weights,
    kind: str,
    rows: int,
    reverse: bool,
) -> list[Node]:
    """The last states, and the outputs of all steps."""
    width = rows // {"lstm": 4, "gru": 3}.get(kind, 1)
    bias = weights.ih_bias
    read = [weights.hh.transpose()]
    if kind == "gru" and weights.hh_bias is not None:
        read.append(weights.hh_bias)
    elif bias is not None and weights.hh_bias is not None:
        bias = bias.add(weights.hh_bias)
    if weights.back is not None:
        read.append(weights.back.transpose())
    gates = _gates(x, weights.ih, bias)

    def body(graph: Graph) -> Sequence[Node]:
        consts = [graph.input() for _ in read]
        carried = [graph.input() for _ in state]
        after = cell(graph.input(), carried, consts, width)
        return [*after, after[0]]

    scan = call.graph.scan(
        *read,
        *state,
        gates,
        body=call.graph.function(body),
        carries=len(state),
        sequences=1,
        reverse=True if reverse else None,
    )
    return several(scan, len(state) + 1)
