"""An imported model as an example of the gallery: its graph, and values and slopes that its own system found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gradserve_client.importing import Imported
from gradserve_client.requests import to_wire
from gradserve_client.tensors import Array

FOLDER: Final = Path(__file__).parents[2] / "examples" / "gallery"
#: half the distance of a central difference, which is then good to ten digits
_STEP: Final = 1e-5
#: how far the server's results may be from those of differences, relative to 1 + their size
_WITHIN: Final = 1e-7

#: the model's outputs by its own system, for inputs and parameters by name
Evaluate = Callable[[Mapping[str, Array]], Sequence[Array]]


@dataclass(frozen=True)
class ImportedExample:
    """A model, float64 throughout, and how its own system runs it.

    `load` gives the imported model and how the system itself evaluates it on inputs and parameters by name. What is
    differentiated is the mean of the squares of its first output.
    """

    name: str
    title: str
    paragraph: str
    source: str
    tags: tuple[str, ...]
    inputs: Mapping[str, Array]
    load: Callable[[], tuple[Imported, Evaluate]]

    def write(self) -> Path:
        """Write the file of the gallery."""
        model, evaluate = self.load()
        node = next(iter(model.outputs.values()))
        loss = node.square().mean()
        parameters = {name: model.values[name] for name in model.parameters}
        fed = {each.id: array for each, array in model.feeds(self.inputs).items()}
        request = {
            "graph": to_wire(model.graph),
            "feeds": [{"node": node, "tensor": _tensor(array)} for node, array in sorted(fed.items())],
            "of": loss.id,
            "wrt": [leaf.id for leaf in model.parameters.values()],
            "outputs": [node.id, loss.id],
        }
        known = {**self.inputs, **parameters}
        value = np.asarray(evaluate(known)[0])
        slopes = {name: _slopes(evaluate, known, name) for name in parameters}
        expected = {
            "values": [_entry(node.id, value), _entry(loss.id, np.mean(value**2))],
            "gradients": [_entry(leaf.id, slopes[name]) for name, leaf in model.parameters.items()],
            "within": _WITHIN,
            "source": f"{self.source}: values from its own evaluation, gradients from central differences",
        }
        return self._written(request, expected)

    def _written(self, request: Mapping[str, Any], expected: Mapping[str, Any]) -> Path:
        members = {
            "title": self.title,
            "paragraph": self.paragraph,
            "source": self.source,
            "tags": self.tags,
            "drawing": f"docs/gallery/{self.name}.svg",
            "mode": "gradients",
            "request": request,
            "expected": expected,
        }
        lines = (f' "{name}": {json.dumps(member, ensure_ascii=False)}' for name, member in members.items())
        target = FOLDER / f"{self.name}.json"
        target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return target


def _slopes(evaluate: Evaluate, known: Mapping[str, Array], name: str) -> Array:
    """The slope of the loss by each element of a parameter."""
    found = np.zeros(known[name].size)
    for place in range(found.size):
        both = []
        for sign in (1, -1):
            moved = np.array(known[name])
            moved.flat[place] += sign * _STEP
            both.append(np.mean(np.asarray(evaluate({**known, name: moved})[0]) ** 2))
        found[place] = (both[0] - both[1]) / (2 * _STEP)
    return found.reshape(known[name].shape)


def _entry(node: int, array: Any) -> dict[str, Any]:
    return {"node": node, "data": [float(f"{number:.12g}") for number in np.ravel(array)]}


def _tensor(array: Array) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.ravel().tolist()}
