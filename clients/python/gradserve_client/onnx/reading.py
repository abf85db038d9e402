"""Reading of models: every tensor and every name of a file is checked before anything is translated.

Files are untrusted. When `read_model` returns, each tensor holds as much data as its shape requires. External data has
been read, and only from regular files in the model's folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, TensorProto, defs, helper, load, load_from_string, numpy_helper

from gradserve_client.errors import InputError
from gradserve_client.importing import Budget
from gradserve_client.tensors import Array

#: a model: a path, the bytes of a file, or the onnx package's parsed form
Model: TypeAlias = str | os.PathLike[str] | bytes | ModelProto


def read_model(model: Model, budget: Budget) -> ModelProto:
    """Read a model, with its external data.

    Raises InputError for an invalid model, for an opset newer than the installed onnx supports, and for tensors that
    cannot be read; and ImportRefused if the model exceeds the budget.
    """
    folder = None if isinstance(model, bytes | ModelProto) else Path(model).parent
    try:
        parsed = _parsed(model, budget)
        tensors = [*_tensors(parsed)]
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"this is not an ONNX model: {error}") from error
    except Exception as error:  # protobuf raises several types
        raise InputError(f"this is not an ONNX model: {type(error).__name__}: {error}") from error
    if not parsed.graph.output:
        raise InputError("this is not an ONNX model: it has no outputs")
    for tensor in tensors:
        _check(tensor, folder, budget)
    _check_opsets(parsed)
    return parsed


def _parsed(model: Model, budget: Budget) -> ModelProto:
    if isinstance(model, ModelProto):
        return model
    if isinstance(model, bytes):
        return load_from_string(model)
    path = Path(model)
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file")
    budget.require(path.stat().st_size)
    return load(path, load_external_data=False)


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of a model, at any depth. Raises InputError for a name that is not UTF-8."""
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        if isinstance(message, TensorProto):
            yield message
            continue
        for field, value in message.ListFields():
            if field.message_type is not None:
                pending += [value] if hasattr(value, "ListFields") else value
            elif field.type == field.TYPE_STRING:
                # protobuf returns bytes if it cannot decode a string
                for text in [value] if isinstance(value, str | bytes) else value:
                    if isinstance(text, bytes):
                        raise InputError(f"this is not an ONNX model: {text!r} in it is not UTF-8")


def _check_opsets(model: ModelProto) -> None:
    newest = defs.onnx_opset_version()
    for domain, version in opsets_of(model).items():
        if not 0 <= version < 2**31:
            raise InputError(f"the model states the invalid version {version} of the opset {domain or 'ai.onnx'!r}")
        if not domain and version > newest:
            raise InputError(
                f"the model uses opset {version}, but the installed onnx supports at most {newest}: install a newer one"
            )


def opsets_of(model: ModelProto) -> dict[str, int]:
    """Return the versions of opsets by domain. The default domain has two names."""
    return {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}


def _check(tensor: TensorProto, folder: Path | None, budget: Budget) -> None:
    """Read external data into the tensor. Raise InputError if its data do not match its type and shape."""
    name, shape = repr(tensor.name), [*tensor.dims]
    budget.locate("tensor", lambda: name)
    if tensor.data_type not in helper.get_all_tensor_dtypes():
        raise InputError(f"the tensor {name} has the element type {tensor.data_type}, which ONNX does not define")
    if any(extent < 0 for extent in shape):
        raise InputError(f"the shape of the tensor {name}, {shape}, has a negative extent")
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    budget.hold(array_bytes(shape, dtype))
    if tensor.data_location == TensorProto.EXTERNAL:
        _read_external(tensor, folder, budget)
    array_of(tensor)


def array_bytes(shape: Any, dtype: np.dtype[Any]) -> int:
    """Return the bytes of an array. An extent of 0 counts as 1, because a loop over another axis still takes time."""
    return math.prod(max(1, int(extent)) for extent in shape) * dtype.itemsize


def array_of(tensor: TensorProto) -> Array:
    """Return the array that a tensor holds. Raises InputError if its data do not match its shape."""
    try:
        array: Array = numpy_helper.to_array(tensor)
    except Exception as error:  # onnx raises whatever NumPy raises
        raise InputError(
            f"the tensor {tensor.name!r} of shape {[*tensor.dims]} cannot be read: {type(error).__name__}: {error}"
        ) from error
    if array.shape != tuple(tensor.dims):
        raise InputError(f"the tensor {tensor.name!r} states the shape {[*tensor.dims]}, but holds {[*array.shape]}")
    return array


def _read_external(tensor: TensorProto, folder: Path | None, budget: Budget) -> None:
    """Move the data of a tensor from its file into the tensor."""
    stated = {entry.key: entry.value for entry in tensor.external_data}
    location = stated.get("location", "")
    if folder is None:
        raise InputError(
            f"the data of the tensor {tensor.name!r} are in the file {location!r}, which is read only if the model "
            "is imported by its path: pass the path instead of bytes"
        )
    path = _inside(folder, location, tensor.name)
    size = path.stat().st_size
    offset = _parse_byte_count(stated.get("offset", "0"), "offset", tensor.name)
    length = _parse_byte_count(stated.get("length", str(max(0, size - offset))), "length", tensor.name)
    if offset + length > size:
        raise InputError(
            f"the data of the tensor {tensor.name!r} are {length} bytes at {offset} of {location!r}, which has {size}"
        )
    budget.require(length)
    with path.open("rb") as file:
        file.seek(offset)
        tensor.raw_data = file.read(length)
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _inside(folder: Path, location: str, name: str) -> Path:
    """Return the path of a location, links resolved.

    Raises InputError for anything but a regular file in the folder.
    """
    try:
        path = (folder / location).resolve(strict=True)
        inside = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # a cycle of links raises RuntimeError
        raise InputError(f"the data of the tensor {name!r} cannot be read from {location!r}: {error}") from error
    if not inside:
        raise InputError(
            f"the data of the tensor {name!r} are in {location!r}, which is not a regular file in the model's folder"
        )
    return path


def _parse_byte_count(stated: str, key: str, name: str) -> int:
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 20):
        raise InputError(f"the {key} of the external data of the tensor {name!r} is not a number of bytes: {stated!r}")
    return int(stated)
