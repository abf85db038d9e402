"""Marks for stopped gradients, set before a program is decomposed.

Decompositions turn `detach` into an alias and inline the region of `no_grad`, so the stop of the gradient is lost. Each
`detach`, and each float that a `no_grad` region reads, is therefore replaced by the custom op
`gradserve_client::stop_gradient`, which has no decomposition. Its rule writes `stop_gradient`.

A mark is a copy. If the program changes the detached memory in place afterwards, the copy would miss the change: that
is reported as an obstacle. `_Aliases` finds such writes by a union-find over nodes that share memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import torch
from torch.fx import Graph, GraphModule, Node

from gradserve_client.importing import Blocked, Obstacles
from gradserve_client.torch.places import place_of

_LIBRARY: Final = torch.library.Library("gradserve_client", "DEF")
_LIBRARY.define("stop_gradient(Tensor x) -> Tensor")
_LIBRARY.impl("stop_gradient", torch.clone, "CompositeExplicitAutograd")
STOP: Final = torch.ops.gradserve_client.stop_gradient.default
#: name in the table of rules
STOP_NAME: Final = "gradserve_client.stop_gradient"
_DETACHES: Final = (torch.ops.aten.detach.default, torch.ops.aten.detach_.default)
_REGION: Final = torch.ops.higher_order.wrap_with_set_grad_enabled
_SHARED: Final = Blocked(
    "it is changed in place while a detached tensor shares its memory, or while gradients are disabled",
    "write y = x + 1 instead of x.add_(1)",
)


def mark(program: Any, obstacles: Obstacles) -> None:
    """Mark the stopped gradients of an exported program. Record in-place writes that a mark would miss as obstacles."""
    module = program.graph_module
    buffers = {
        each.arg.name for each in program.graph_signature.input_specs if each.kind.name in ("BUFFER", "CONSTANT_TENSOR")
    }
    aliases = _Aliases(module)
    for node in [*module.graph.nodes]:
        if node.op != "call_function":
            continue
        if node.target in _DETACHES:
            _mark_detach(module.graph, node, aliases, obstacles)
        elif node.target is _REGION and not node.args[0]:
            _mark_region(module, node, buffers, aliases, obstacles)
    module.recompile()


def _mark_detach(graph: Graph, node: Node, aliases: _Aliases, obstacles: Obstacles) -> None:
    for writer in aliases.writers_after(node):
        obstacles.add(_name(writer), place_of(writer), _SHARED)
    with graph.inserting_before(node):
        stop = graph.call_function(STOP, (node.args[0],))
    stop.meta = dict(node.meta)
    node.replace_all_uses_with(stop)
    graph.erase_node(node)


def _mark_region(
    module: GraphModule, node: Node, buffers: Collection[str], aliases: _Aliases, obstacles: Obstacles
) -> None:
    """Mark the floats that a region reads. Tensors that it writes must be buffers, which need no gradient."""
    inner = getattr(module, node.args[1].target)
    inner_aliases = _Aliases(inner)
    placeholders = [each for each in inner.graph.nodes if each.op == "placeholder"]
    for operand, placeholder in zip(node.args[2:], placeholders, strict=True):
        writers = [*inner_aliases.writers_after(placeholder)]
        if writers:
            only_here = getattr(operand, "name", "") in buffers and [*aliases.writers(operand)] == [node]
            for writer in [] if only_here else writers:
                obstacles.add(_name(writer), place_of(writer), _SHARED)
        elif placeholder.meta["val"].is_floating_point():
            _mark_read(inner.graph, placeholder)
    inner.recompile()


def _mark_read(graph: Graph, read: Node) -> None:
    with graph.inserting_after(read):
        stop = graph.call_function(STOP, (read,))
    stop.meta = dict(read.meta)
    read.replace_all_uses_with(stop, delete_user_cb=lambda user: user is not stop and user.op != "output")


def _name(node: Node) -> str:
    return str(node.target).removeprefix("aten.")


class _Aliases:
    """Groups of nodes that share memory, and the nodes that write to it in place."""

    def __init__(self, module: GraphModule) -> None:
        self._module = module
        self._order: dict[Node, int] = {}
        self._parent: dict[Node, Node] = {}
        #: pairs of a node and the operand that it writes to
        self._writes: list[tuple[Node, Node]] = []
        for node in module.graph.nodes:
            self._order[node] = len(self._order)
            self._add(node)

    def writers(self, tensor: Node) -> Iterator[Node]:
        """Yield the nodes that write to the memory of a tensor."""
        root = self._root(tensor)
        yield from (writer for writer, target in self._writes if self._root(target) is root)

    def writers_after(self, node: Node) -> Iterator[Node]:
        """Yield the nodes after this one that write to its memory."""
        yield from (writer for writer in self.writers(node) if self._order[writer] > self._order[node])

    def _root(self, node: Node) -> Node:
        while node in self._parent:
            node = self._parent[node]
        return node

    def _join(self, one: Node, other: Node) -> None:
        a, b = self._root(one), self._root(other)
        if a is not b:
            self._parent[a] = b

    def _add(self, node: Node) -> None:
        if node.op != "call_function":
            return
        if node.target is _REGION:
            self._add_region(node)
        elif not isinstance(node.target, torch._ops.OpOverload):
            for operand in node.all_input_nodes:
                self._join(node, operand)
        else:
            self._add_op(node)

    def _add_region(self, node: Node) -> None:
        inner = getattr(self._module, node.args[1].target)
        inner_aliases = _Aliases(inner)
        for operand, placeholder in zip(
            node.args[2:], (n for n in inner.graph.nodes if n.op == "placeholder"), strict=True
        ):
            self._join(node, operand)
            if any(inner_aliases.writers(placeholder)):
                self._writes.append((node, operand))

    def _add_op(self, node: Node) -> None:
        for position, argument in enumerate(node.target._schema.arguments):
            if argument.alias_info is None:
                continue
            operands = node.args[position] if position < len(node.args) else node.kwargs.get(argument.name)
            for operand in operands if isinstance(operands, list | tuple) else [operands]:
                if isinstance(operand, Node):
                    self._join(node, operand)
                    if argument.alias_info.is_write:
                        self._writes.append((node, operand))
