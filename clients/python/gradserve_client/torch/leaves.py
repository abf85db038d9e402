"""What a program reads: parameters, buffers, constants and inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, Note
from gradserve_client.tensors import Array
from gradserve_client.torch.translator import Translator
from gradserve_client.torch.values import Type, Value, constant_of, require_sendable, type_of

#: no name of a node is longer
_LONGEST = 128


class Leaves:
    """The leaves of a program by name, which their placeholders are given as.

    `parameters` are those that are trained, `state` frozen ones and buffers; both have their `values`. Parameters and
    buffers that are one tensor under several names are one leaf.
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
        self._share()
        placeholders = {step.name: step for step in program.graph.nodes if step.op == "placeholder"}
        for spec in program.graph_signature.input_specs:
            self._give(spec, placeholders[spec.arg.name])

    def name_of(self, target: str) -> str:
        """The first of the names that a parameter or a buffer has."""
        return self._names[target]

    def _share(self) -> None:
        """One name for each tensor, and a note for those that have several."""
        names: dict[int, list[str]] = {}
        for name, tensor in self._tensors.items():
            names.setdefault(id(tensor), []).append(name)
        for several in names.values():
            self._names |= dict.fromkeys(several, several[0])
            if len(several) > 1:
                told = " and ".join(repr(name) for name in several)
                sentence = f"one tensor under the names {told}: one leaf, whose gradient is the sum over its uses"
                self.notes.append(Note("leaf", several[0], len(several), sentence))

    def _give(self, spec: Any, step: Any) -> None:
        kind = spec.kind.name
        if kind == "USER_INPUT":
            value = self._input(spec, step)
        elif kind in ("PARAMETER", "BUFFER"):
            value = self._own(self._names[spec.target])
        elif kind == "CONSTANT_TENSOR":
            value = constant_of(self._program.constants[spec.target].detach())
        else:
            self._translator.obstacles.meet("input", repr(spec.arg.name), Blocked(f"it is {kind.lower()}, no tensor"))
            value = None
        self._translator.give(step, value)

    def _input(self, spec: Any, step: Any) -> Value | None:
        name, example = spec.arg.name, step.meta.get("val")
        if not isinstance(example, torch.Tensor):
            if example is not None:
                self.notes.append(Note("model", name, 1, f"it is {example!r} in the graph, since it is no tensor"))
            return None
        kind = type_of(example)
        try:
            require_sendable(kind)
        except Blocked as blocked:
            self._translator.obstacles.meet("input", repr(name), blocked)
            return None
        self.inputs[name] = self._translator.graph.input(self._free_name(name), **_declared(kind))
        return Value(kind, self.inputs[name])

    def _own(self, name: str) -> Value | None:
        """The leaf of a parameter or a buffer, made where there is none yet."""
        tensor = self._tensors[name]
        found = self.parameters.get(name, self.state.get(name))
        kind = type_of(tensor)
        if found is not None:
            return Value(kind, found)
        try:
            require_sendable(kind)
        except Blocked as blocked:
            self._translator.obstacles.meet("parameter", repr(name), blocked)
            return None
        graph, called = self._translator.graph, self._free_name(name)
        if isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad:
            self.parameters[name] = graph.parameter(called, **_declared(kind))
        else:
            self.state[name] = graph.input(called, **_declared(kind))
            if isinstance(tensor, torch.nn.Parameter):
                self.notes.append(Note("leaf", name, 1, "it requires no gradient, and is state"))
        self.values[name] = np.array(tensor.numpy(force=True))
        return Value(kind, self.parameters.get(name, self.state.get(name)))

    def _free_name(self, name: str) -> str | None:
        """A name for a node, where no other leaf has it and it is not longer than names may be."""
        taken = {*self.inputs, *self.parameters, *self.state}
        return name if name not in taken and len(name) <= _LONGEST else None


def _declared(kind: Type) -> dict[str, Any]:
    return {"dtype": kind.dtype, "shape": [*kind.shape] or None, "zero_d": not kind.shape or None}
