"""The op catalogue, as clients and porting tools read it."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.scalars import Int64
from schemas.tensor import Dtype


class AttributeInfo(TypedDict):
    """One attribute that an op takes."""

    name: str
    type: Annotated[str, Field(description="one of the kinds that there are, which the document lists")]
    required: bool
    doc: str
    since: Annotated[Int64, Field(description="the opset that introduced it, or its op")]
    default: NotRequired[Annotated[str, Field(description="as JSON; without one, absence means what `doc` says")]]
    choices: NotRequired[list[str]]


class OpAlias(TypedDict):
    """Another spelling of an op, and the systems that use it."""

    name: str
    systems: str


class OpInfo(TypedDict):
    """One op."""

    name: str
    summary: str
    doc: str
    operands: Annotated[list[str], Field(description='"b?" may be absent, "x..." stands for one or more')]
    attributes: list[AttributeInfo]
    gradient: Annotated[str, Field(description="the gradient as a formula")]
    dtypes: list[Dtype]
    aliases: list[OpAlias]
    several_outputs: Annotated[bool, Field(description="whether results are read through get_output")]
    since: Annotated[Int64, Field(description="the opset that introduced it")]


class Catalogue(TypedDict):
    """All ops, sorted by name."""

    opset: Int64
    ops: list[OpInfo]
