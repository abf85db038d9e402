"""Op methods in TypeScript: operands, then required attributes, then an object of options."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from clients.op_descriptions import Attribute, OpDescription, Operand, later

_WIDTH: Final = 120
#: reserved words (ECMA-262, 12.7.2)
_RESERVED: Final = frozenset((
    "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do",
    "else", "enum", "export", "extends", "false", "finally", "for", "function", "if", "implements", "import",
    "in", "instanceof", "interface", "let", "new", "null", "package", "private", "protected", "public",
    "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "var", "void", "while",
    "with", "yield",
))  # fmt: skip
#: width of text in a comment, after indentation and star
_ROOM: Final = _WIDTH - 5
_OPS: Final = """/** The ops as methods. Written by `python -m clients.ops` from the op registry: do not edit. */

import type { Dtype } from "../dtypes.js";
import type { GraphFunction, Node, StatedAttributes } from "../graph.js";
import type { TensorLike } from "../tensor.js";

/** Attributes whose values are tensors. */
export const TENSOR_ATTRIBUTES: ReadonlySet<string> = new Set([%s]);
/** Attributes whose values are integers or lists of integers. */
export const WHOLE_ATTRIBUTES: ReadonlySet<string> = new Set([
%s
]);
/** The first opset with an op, or with `op.attribute`, unless it is opset 1. */
export const SINCE: { readonly [name: string]: number } = {
%s
};

/** An integer: a bigint if a number cannot represent it exactly. */
export type Int = number | bigint;
export type Ints = readonly Int[];
/** A number: a bigint for an integer that a number cannot represent exactly. */
export type Float = number | bigint;
/** The name of a dtype. Servers may support more dtypes than this client. */
export type DtypeName = Dtype | (string & {});
/** Optional members. */
export type Optional<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** The op methods of graphs. Each appends a node. */
export abstract class Ops {
  /** Appends an op by name. The methods of ops call it. Operands at the end may be omitted. */
  protected abstract append(
    op: string,
    operands: readonly (Node | undefined)[],
    attrs: StatedAttributes,
    name?: string,
  ): Node;
"""
_SIGNATURES: Final = """/**
 * The parameters of each op's method, in order, by their API names: operands (`?` marks an optional one, `...` a list)
 * and `=attributes`. Other attributes are in the last argument.
 *
 * Written by `python -m clients.ops` from the op registry: do not edit.
 */
export const SIGNATURES: { readonly [op: string]: readonly string[] } = {
%s
};
"""
_TYPES: Final = {
    "bool": "boolean",
    "int": "Int",
    "ints": "Ints",
    "float": "Float",
    "string": "string",
    "dtype": "DtypeName",
    "tensor": "TensorLike",
    "function": "GraphFunction",
}
_WHOLE: Final = frozenset({"int", "ints"})


def printed(ops: Sequence[OpDescription]) -> str:
    """Return the module with all methods."""
    tensors = ", ".join(_names_of(ops, {"tensor"}))
    whole = _filled_list(_names_of(ops, _WHOLE), "  ")
    methods = "\n".join(_method(op) for op in ops)
    since = "\n".join(f"  {_key(name)}: {opset}," for name, opset in later(ops).items())
    return f"{_OPS % (tensors, whole, since)}\n{methods}}}\n"


def signatures(ops: Sequence[OpDescription]) -> str:
    """Return the module that states the order of parameters, for programs that call methods by the names of ops."""
    return _SIGNATURES % "\n".join(f"  {op.name}: [{', '.join(map(json.dumps, _order(op)))}]," for op in ops)


def _names_of(ops: Sequence[OpDescription], kinds: frozenset[str] | set[str]) -> list[str]:
    return sorted({json.dumps(a.name) for op in ops for a in op.attributes if a.kind in kinds})


def _filled_list(entries: Sequence[str], indent: str) -> str:
    return textwrap.fill(", ".join(entries) + ",", _WIDTH, initial_indent=indent, subsequent_indent=indent)


def _order(op: OpDescription) -> Iterator[str]:
    required, optional = _operands(op)
    yield from (f"...{operand.name}" if operand.variadic else operand.name for operand in required)
    yield from (f"={attribute.name}" for attribute in op.attributes if attribute.required)
    yield from (f"{operand.name}?" for operand in optional)


def _operands(op: OpDescription) -> tuple[list[Operand], list[Operand]]:
    """Return the required operands, and the optional ones."""
    return [o for o in op.operands if not o.optional], [o for o in op.operands if o.optional]


def _method(op: OpDescription) -> str:
    head = _wrapped(f"  {_camel(op.name)}(", [*_parameters(op)], "): Node {", [_last_parameter(op)])
    body = _wrapped("    return this.append(", [*_arguments(op)], ");")
    return f"{_comment(op)}\n{head}\n{body}\n  }}\n"


def _parameters(op: OpDescription) -> Iterator[str]:
    """Yield the name of a fed leaf, required operands, required attributes, and optional operands."""
    required, optional = _operands(op)
    if op.fed:
        yield "name?: string"
    yield from (f"{_parameter(o.name)}: {'readonly Node[]' if o.variadic else 'Node'}" for o in required)
    yield from (f"{_parameter(a.name)}: {_type(a)}" for a in op.attributes if a.required)
    yield from (f"{_parameter(o.name)}?: Node" for o in optional)


def _last_parameter(op: OpDescription) -> str:
    """Return the options parameter."""
    members = [f"{_camel(a.name)}: {_type(a)}" for a in op.attributes if not a.required]
    label = [] if op.fed else ["name: string"]
    return f"options: Optional<{{ {'; '.join([*members, *label])} }}> = {{}}"


def _type(attribute: Attribute) -> str:
    if attribute.choices:
        return " | ".join(map(json.dumps, attribute.choices))
    return _TYPES.get(attribute.kind, "NonNullable<StatedAttributes[string]>")


def _arguments(op: OpDescription) -> Iterator[str]:
    operands = [f"...{_parameter(o.name)}" if o.variadic else _parameter(o.name) for o in op.operands]
    attributes = [f"{a.name}: {_value(a)}" if _value(a) != a.name else a.name for a in op.attributes]
    yield json.dumps(op.name)
    yield f"[{', '.join(operands)}]"
    yield f"{{ {', '.join(attributes)} }}" if attributes else "{}"
    yield "name" if op.fed else "options.name"


def _value(attribute: Attribute) -> str:
    return _parameter(attribute.name) if attribute.required else f"options.{_camel(attribute.name)}"


def _comment(op: OpDescription) -> str:
    several = ["The op has several results. Read each with getOutput."] if op.several else []
    gradient = [] if op.gradient.startswith("none") else [f"Gradient: {op.gradient}."]
    paragraphs = [
        *map(_rewrapped, op.doc.split("\n\n")),
        *several,
        *map(_rewrapped, gradient),
        *_attribute_section(op.attributes),
    ]
    lines = "\n\n".join(paragraphs).replace("*/", "* /").splitlines()
    if len(lines) == 1:
        return f"  /** {lines[0]} */"
    return "\n".join(["  /**", *(f"   * {line}".rstrip() for line in lines), "   */"])


def _rewrapped(text: str, indent: str = "") -> str:
    if all(len(line) <= _ROOM for line in text.splitlines()):
        return text
    return textwrap.fill(text, _ROOM, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _attribute_section(attributes: Iterable[Attribute]) -> Iterator[str]:
    lines = [_rewrapped(f"@param {_place(a)} {a.doc}{_default(a)}", indent="  ") for a in attributes]
    if lines:
        yield "\n".join(lines)


def _place(attribute: Attribute) -> str:
    return _parameter(attribute.name) if attribute.required else f"options.{_camel(attribute.name)}"


def _default(attribute: Attribute) -> str:
    return "" if attribute.default is None else f"; default {json.dumps(attribute.default)}"


def _key(name: str) -> str:
    """Return a key of an object literal, quoted if necessary."""
    return name if name.isidentifier() else json.dumps(name)


def _parameter(name: str) -> str:
    """Return a parameter's name: camel case, unless it is reserved."""
    identifier = _camel(name)
    return f"{identifier}_" if identifier in _RESERVED else identifier


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _wrapped(before: str, parts: Sequence[str], after: str, last: Sequence[str] = ()) -> str:
    """Return a parenthesised list, on one line or with one line per part."""
    line = before + ", ".join([*parts, *last]) + after
    if len(line) <= _WIDTH:
        return line
    indent = " " * (len(before) - len(before.lstrip()))
    return "\n".join([before, *(_member(part, f"{indent}  ") for part in [*parts, *last]), indent + after])


def _member(part: str, indent: str) -> str:
    """Return a part on its own line, or on several if it has too many members."""
    line = f"{indent}{part},"
    if len(line) <= _WIDTH:
        return line
    head, _, rest = part.partition("{ ")
    inner, _, tail = rest.partition(" }")
    mark = ";" if ";" in inner else ","
    members = "\n".join(f"{indent}  {member}{mark}" for member in inner.split(f"{mark} "))
    return f"{indent}{head}{{\n{members}\n{indent}}}{tail},"
