"""Where a program stops gradients: marked before it is decomposed, since decomposing forgets it.

`detach` becomes an alias, and the region of `no_grad` is put inline. So each `detach`, and each float that a region
reads, becomes an op of its own before, which nothing decomposes, and which is said as `stop_gradient`.
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
#: as the table of rules has it
STOP_NAME: Final = "gradserve_client.stop_gradient"
_DETACHES: Final = (torch.ops.aten.detach.default, torch.ops.aten.detach_.default)
_REGION: Final = torch.ops.higher_order.wrap_with_set_grad_enabled
_SHARED: Final = Blocked(
    "it is changed in place while a detached tensor shares its memory, or where no gradients are taken",
    "write y = x + 1 in place of x.add_(1)",
)


def mark(program: Any, obstacles: Obstacles) -> None:
    """Mark what a program of torch.export stops gradients at, and note what would change a value behind a mark."""
    module = program.graph_module
    buffers = {
        each.arg.name for each in program.graph_signature.input_specs if each.kind.name in ("BUFFER", "CONSTANT_TENSOR")
    }
    aliases = _Aliases(module)
    for node in [*module.graph.nodes]:
        if node.op != "call_function":
            continue
        if node.target in _DETACHES:
            _detached(module.graph, node, aliases, obstacles)
        elif node.target is _REGION and not node.args[0]:
            _region(module, node, buffers, aliases, obstacles)
    module.recompile()


def _detached(graph: Graph, node: Node, aliases: _Aliases, obstacles: Obstacles) -> None:
    for changed in aliases.changed_after(node):
        obstacles.meet(_name(changed), place_of(changed), _SHARED)
    with graph.inserting_before(node):
        mark = graph.call_function(STOP, (node.args[0],))
    mark.meta = dict(node.meta)
    node.replace_all_uses_with(mark)
    graph.erase_node(node)


def _region(module: GraphModule, node: Node, buffers: Collection[str], aliases: _Aliases, obstacles: Obstacles) -> None:
    """What a region reads has no gradient there. What it changes may be buffers alone, which have none anyway."""
    inner = getattr(module, node.args[1].target)
    within = _Aliases(inner)
    placeholders = [each for each in inner.graph.nodes if each.op == "placeholder"]
    for given, inside in zip(node.args[2:], placeholders, strict=True):
        changes = [*within.changed_after(inside)]
        if changes:
            sole = getattr(given, "name", "") in buffers and [*aliases.changed(given)] == [node]
            for changed in [] if sole else changes:
                obstacles.meet(_name(changed), place_of(changed), _SHARED)
        elif inside.meta["val"].is_floating_point():
            _marked(inner.graph, inside)
    inner.recompile()


def _marked(graph: Graph, read: Node) -> None:
    with graph.inserting_after(read):
        mark = graph.call_function(STOP, (read,))
    mark.meta = dict(read.meta)
    read.replace_all_uses_with(mark, delete_user_cb=lambda user: user is not mark and user.op != "output")


def _name(node: Node) -> str:
    return str(node.target).removeprefix("aten.")


class _Aliases:
    """Which nodes of a graph share memory, and which of them change it."""

    def __init__(self, module: GraphModule) -> None:
        self._module = module
        self._order: dict[Node, int] = {}
        self._parent: dict[Node, Node] = {}
        self._changes: list[tuple[Node, Node]] = []
        for node in module.graph.nodes:
            self._order[node] = len(self._order)
            self._read(node)

    def changed(self, tensor: Node) -> Iterator[Node]:
        """The nodes that change what shares memory with this one."""
        root = self._root(tensor)
        yield from (by for by, what in self._changes if self._root(what) is root)

    def changed_after(self, node: Node) -> Iterator[Node]:
        """Those that stand behind it."""
        yield from (by for by in self.changed(node) if self._order[by] > self._order[node])

    def _root(self, node: Node) -> Node:
        while node in self._parent:
            node = self._parent[node]
        return node

    def _join(self, one: Node, other: Node) -> None:
        a, b = self._root(one), self._root(other)
        if a is not b:
            self._parent[a] = b

    def _read(self, node: Node) -> None:
        if node.op != "call_function":
            return
        if node.target is _REGION:
            self._read_region(node)
        elif not isinstance(node.target, torch._ops.OpOverload):
            for operand in node.all_input_nodes:
                self._join(node, operand)
        else:
            self._read_op(node)

    def _read_region(self, node: Node) -> None:
        inner = getattr(self._module, node.args[1].target)
        within = _Aliases(inner)
        for given, inside in zip(node.args[2:], (n for n in inner.graph.nodes if n.op == "placeholder"), strict=True):
            self._join(node, given)
            if any(within.changed(inside)):
                self._changes.append((node, given))

    def _read_op(self, node: Node) -> None:
        for place, stated in enumerate(node.target._schema.arguments):
            if stated.alias_info is None:
                continue
            given = node.args[place] if place < len(node.args) else node.kwargs.get(stated.name)
            for operand in given if isinstance(given, list | tuple) else [given]:
                if isinstance(operand, Node):
                    self._join(node, operand)
                    if stated.alias_info.is_write:
                        self._changes.append((node, operand))
