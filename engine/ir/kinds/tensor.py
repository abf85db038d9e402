"""Tensors that are part of a graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from hashlib import blake2b, sha256
from typing import Any, ClassVar

import numpy as np

from engine.ir.kinds.kind import AttributeKind, JsonSchema
from engine.ir.tensor_type import DTYPES, DType, HostArray, TensorType, read_only_copy, real_dtype


class TensorKind(AttributeKind):
    """A tensor: a NumPy array, read-only once it is bound."""

    name = "tensor"
    position = 7
    expected = roughly = "a tensor"
    forms = (np.ndarray,)
    samples: ClassVar[tuple[Any, ...]] = (np.array([[1.0, -0.0]]), np.array(3, "int32"), np.zeros((0, 2), "bool"))
    is_object = True

    def bound(self, stated: Any) -> HostArray:
        """Return the tensor, copied if it is writable: plans are cached by its current elements."""
        array: HostArray = stated
        return read_only_copy(array) if array.flags.writeable else array

    def is_bound(self, value: Any) -> bool:
        """Return whether it is a tensor with a dtype of the opset."""
        return isinstance(value, np.ndarray) and value.dtype.name in DTYPES

    def dtype_of(self, value: Any) -> DType:
        """Return the dtype of its elements."""
        dtype: DType = value.dtype
        return dtype

    def printed(self, value: Any) -> Any:
        """Return the elements, row-major, complex numbers as two parts. Type and shape are those of the node."""
        flat = value.ravel()
        return flat.view(real_dtype(flat.dtype)).tolist()

    def parsed(self, printed: Any, type: TensorType) -> HostArray:
        """Return a tensor of these elements, with the node's type."""
        return np.array(printed, dtype=real_dtype(type.dtype)).view(type.dtype).reshape(type.shape)

    def schema(self, tensor: JsonSchema) -> JsonSchema:
        """Return the schema of a tensor."""
        return tensor

    def from_wire(self, sent: Any, tensor: Callable[[Any], HostArray]) -> Any:
        """Decode the tensor."""
        return tensor(sent)

    def written(self, stated: Any, tensor: Callable[[HostArray], Any]) -> Any:
        """Encode the tensor."""
        return tensor(stated)

    def canonical(self, value: Any) -> Any:
        """Return dtype, shape, and a hash of the little-endian bytes, row-major."""
        little_endian = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        digest = sha256(little_endian.data).hexdigest()
        return {"dtype": value.dtype.name, "sha256": digest, "shape": list(value.shape)}

    def key(self, value: Any) -> Hashable:
        """Return a hash of its bytes: a copy of them would be as large as the request."""
        return "tensor", value.dtype.str, value.shape, blake2b(np.ascontiguousarray(value).data).digest()

    def is_cacheable(self, value: Any) -> bool:
        """Return False: nothing is cached by tensors."""
        return False
