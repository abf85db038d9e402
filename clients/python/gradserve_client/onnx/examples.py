"""Example inputs for a file imported without any: random numbers of the shapes that the file states."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ValueInfoProto

from gradserve_client.errors import InputError
from gradserve_client.importing import DEFAULT_LIMITS, Budget, Imported, ImportLimits
from gradserve_client.onnx.importer import dtype_of, import_model, inputs_of
from gradserve_client.onnx.reading import array_bytes, read_model


def import_file(
    file: str | os.PathLike[str],
    examples: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int]],
    *,
    limits: ImportLimits = DEFAULT_LIMITS,
    **options: Any,
) -> Imported:
    """Import the model of a file, as `import_model` does with the same options.

    An input without an example gets a random one, of the shape in `shapes` or else of the shape in the file. Raises
    InputError if neither gives a shape, and the errors of `import_model`.
    """
    budget = Budget(limits, "the model")
    model = read_model(file, budget)
    rng = np.random.default_rng(0)
    stated = inputs_of(model)
    unknown = sorted((shapes.keys() | examples.keys()) - {each.name for each in stated})
    if unknown:
        raise InputError(f"{unknown[0]!r} is not an input of the model")
    generated = {
        each.name: _generate_example(each, shapes.get(each.name), rng, budget)
        for each in stated
        if each.name not in examples
    }
    return import_model(model, {**examples, **generated}, limits=limits, **options)


def _generate_example(
    stated: ValueInfoProto, shape: Sequence[int] | None, rng: np.random.Generator, budget: Budget
) -> Any:
    if not stated.type.HasField("tensor_type"):
        return []
    tensor = stated.type.tensor_type
    if shape is None:
        unset = [dim.dim_param or "?" for dim in tensor.shape.dim if not dim.HasField("dim_value")]
        if unset or not tensor.HasField("shape"):
            problem = f"leaves {', '.join(unset)} open" if unset else "is missing"
            raise InputError(f"the shape of {stated.name!r} {problem} in the file: pass it, as {stated.name}=2x3")
        shape = [dim.dim_value for dim in tensor.shape.dim]
    if any(extent < 0 for extent in shape):
        raise InputError(f"the shape of {stated.name!r}, {[*shape]}, has a negative extent")
    dtype = dtype_of(stated)
    budget.locate("input", lambda: repr(stated.name))
    # random numbers are drawn in float64
    budget.hold(array_bytes(shape, np.dtype(np.float64)))
    if dtype.kind == "O":
        return np.full(shape, "", object)
    # integers may be positions or lengths: 0 is in range wherever there is an entry
    return rng.standard_normal(shape).astype(dtype) if dtype.kind == "f" else np.zeros(shape, dtype)
