"""Leaves of an exported program: parameters, buffers, constants and inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Note
from gradserve_client.tensors import Array
from gradserve_client.torch.translator import Translator
from gradserve_client.torch.values import Type, Value, constant_of, require_supported, type_of

#: maximum length of a node's name
_MAX_NAME_LENGTH = 128


class Leaves:
    """The leaves of a program by name. Constructing it defines the program's placeholders in the translator.

    `parameters` are trained; `state` are frozen parameters and buffers; `values` has the values of both. Parameters and
    buffers that are the same tensor under several names are one leaf.
    """

    def __init__(self, module: torch.nn.Module, program: Any, translator: Translator) -> None:
        self.inputs: dict[str, Node] = {}
        self.parameters: dict[str, Node] = {}
        self.state: dict[str, Node] = {}
        self.values: dict[str, Array] = {}
        self.notes: list[Note] = []
        self._translator = translator
        self._program = program
        self._tensors = dict(module.named_parameters(remove_duplicate=False))
        self._tensors |= dict(module.named_buffers(remove_duplicate=False))
        self._names: dict[str, str] = {}
        self._find_shared()
        placeholders = {step.name: step for step in program.graph.nodes if step.op == "placeholder"}
        for spec in program.graph_signature.input_specs:
            self._define(spec, placeholders[spec.arg.name])

    def name_of(self, target: str) -> str:
        """Return the first name of a parameter or buffer."""
        return self._names[target]

    def _find_shared(self) -> None:
        """Choose one name for each tensor, and add a note if it has several."""
        names: dict[int, list[str]] = {}
        for name, tensor in self._tensors.items():
            names.setdefault(id(tensor), []).append(name)
        for aliases in names.values():
            self._names |= dict.fromkeys(aliases, aliases[0])
            if len(aliases) > 1:
                quoted = " and ".join(repr(name) for name in aliases)
                sentence = f"one tensor under the names {quoted}: one leaf, whose gradient is the sum over its uses"
                self.notes.append(Note("leaf", aliases[0], len(aliases), sentence))

    def _define(self, spec: Any, step: Any) -> None:
        kind = spec.kind.name
        if kind == "USER_INPUT":
            value = self._input(spec, step)
        elif kind in ("PARAMETER", "BUFFER"):
            value = self._tensor(self._names[spec.target])
        elif kind == "CONSTANT_TENSOR":
            value = constant_of(self._program.constants[spec.target].detach())
        else:
            self._translator.obstacles.add("input", repr(spec.arg.name), Blocked(f"it is {kind.lower()}, not a tensor"))
            value = None
        self._translator.define(step, value)

    def _input(self, spec: Any, step: Any) -> Value | None:
        name, example = spec.arg.name, step.meta.get("val")
        if not isinstance(example, torch.Tensor):
            if example is not None:
                self.notes.append(Note("model", name, 1, f"it is {example!r} in the graph, since it is not a tensor"))
            return None
        kind = type_of(example)
        try:
            require_supported(kind)
        except Blocked as blocked:
            self._translator.obstacles.add("input", repr(name), blocked)
            return None
        self.inputs[name] = self._translator.graph.input(self._free_name(name), **_declared(kind))
        return Value(kind, self.inputs[name])

    def _tensor(self, name: str) -> Value | None:
        """Return the leaf of a parameter or buffer, added on first use."""
        tensor = self._tensors[name]
        leaf = self.parameters.get(name, self.state.get(name))
        kind = type_of(tensor)
        if leaf is not None:
            return Value(kind, leaf)
        try:
            require_supported(kind)
        except Blocked as blocked:
            self._translator.obstacles.add("parameter", repr(name), blocked)
            return None
        graph, node_name = self._translator.graph, self._free_name(name)
        if isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad:
            self.parameters[name] = graph.parameter(node_name, **_declared(kind))
        else:
            self.state[name] = graph.input(node_name, **_declared(kind))
            if isinstance(tensor, torch.nn.Parameter):
                self.notes.append(Note("leaf", name, 1, "it requires no gradient, so it is state"))
        self.values[name] = np.array(tensor.numpy(force=True))
        return Value(kind, self.parameters.get(name, self.state.get(name)))

    def _free_name(self, name: str) -> str | None:
        """Return the name for a node, or None if another leaf has it or it is too long."""
        used = {*self.inputs, *self.parameters, *self.state}
        return name if name not in used and len(name) <= _MAX_NAME_LENGTH else None


def _declared(kind: Type) -> dict[str, Any]:
    return {"dtype": kind.dtype, "shape": [*kind.shape] or None, "zero_d": not kind.shape or None}
