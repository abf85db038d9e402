"""Records and maps kept as one tensor, whose leading axis is cut into equal parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import Composite, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType
from engine.oplib.operands import require_axes, with_extent
from engine.oplib.slices import cut


class Part(Composite):
    """Base: one of `total` equal parts of the leading axis. A subclass says what its two attributes are called."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    gradient: ClassVar[str] = "g on that part, 0 on the others"
    index: ClassVar[str]
    total: ClassVar[str]

    def infer(self, x: TensorType, **attrs: int) -> ResultTypes:
        """The leading extent, divided. Raises BadAttribute, ShapeMismatch."""
        index, total = attrs[self.index], attrs[self.total]
        if index >= total:
            wanted = f"less than {self.total} = {total}"
            raise BadAttribute(
                f"attribute {self.index} must be {wanted}, but is {index}", expected=wanted, got=str(index)
            )
        require_axes(x, 1, "to hold parts")
        extent = x.shape[0]
        if extent % total:
            wanted = f"a leading extent that {self.total} = {total} divides"
            raise ShapeMismatch(
                f"operand 0 (x) must have {wanted}, but has {extent}", operand=0, expected=wanted, got=str(extent)
            )
        return x.with_shape(with_extent(x.shape, 0, extent // total))

    def compose(self, x: Value, **attrs: int) -> Value:
        """A slice of the leading axis."""
        size = x.shape[0] // attrs[self.total]
        return cut(x, 0, attrs[self.index] * size, (attrs[self.index] + 1) * size)


class StructField(Part):
    """One field of a record that is kept as one tensor.

    The leading axis is cut into `total_fields` equal parts, and y is the part `field_index`; the axis stays.
    """

    name = "struct_field"
    section = "containers"
    aliases: ClassVar[Mapping[str, str]] = {"StructField": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {
        "field_index": Attr("int", doc="which field, from 0", minimum=0),
        "total_fields": Attr("int", doc="how many fields the record has", minimum=1),
    }
    index, total = "field_index", "total_fields"
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(6, 2), field_index=1, total_fields=3),
        Sample(Real(2), field_index=0, total_fields=2),
    )


class MapLookup(Part):
    """The value under one key of a map that is kept as one tensor, keys in insertion order.

    The leading axis is cut into `total_keys` equal parts, and y is the part `key_index`; the axis stays.
    """

    name = "map_lookup"
    section = "containers"
    aliases: ClassVar[Mapping[str, str]] = {"MapLookup": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {
        "key_index": Attr("int", doc="which key, from 0, in insertion order", minimum=0),
        "total_keys": Attr("int", doc="how many keys the map has", minimum=1),
    }
    index, total = "key_index", "total_keys"
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(4, 2), key_index=1, total_keys=2),
        Sample(Real(3), key_index=2, total_keys=3),
    )
