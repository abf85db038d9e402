"""Op methods in Python: operands and required attributes are positional, other attributes are keyword-only."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from keyword import iskeyword
from typing import Final

from clients.op_descriptions import Attribute, OpDescription, Operand, later

_WIDTH: Final = 120
#: width of text in a docstring, whose first line may have quotation marks on both sides
_ROOM: Final = _WIDTH - 8 - 6
_HEAD: Final = '''"""The ops as methods. Written by `python -m clients.ops` from the op registry: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy.typing as npt

if TYPE_CHECKING:
    from gradserve_client.graph import GraphFunction, Node

#: attributes whose values are tensors
TENSOR_ATTRIBUTES: Final = frozenset({%s})
#: the first opset with an op, or with `op.attribute`, unless it is opset 1
SINCE: Final = {
%s}
'''
_NODE_OPS: Final = '''

class NodeOps:
    """Ops whose first operand is the node."""

    def _op(self, op: str, /, *others: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """Append an op whose first operand is the node."""
        raise NotImplementedError
'''
_GRAPH_OPS: Final = '''

class GraphOps:
    """Leaves, and ops on a list of nodes."""

    def op(self, op: str, /, *operands: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """Append any op by name."""
        raise NotImplementedError
'''
_TYPES: Final = {
    "bool": "bool",
    "int": "int",
    "ints": "Sequence[int]",
    "float": "float",
    "string": "str",
    "dtype": "npt.DTypeLike",
    "tensor": "npt.ArrayLike",
    "function": "GraphFunction",
}


def printed(ops: Sequence[OpDescription]) -> str:
    """Return the module with all methods."""
    tensors = sorted({f'"{a.name}"' for op in ops for a in op.attributes if a.kind == "tensor"})
    of_nodes = "\n".join(_method(op) for op in ops if op.is_of_a_node)
    of_graphs = "\n".join(_method(op) for op in ops if not op.is_of_a_node)
    since = "".join(f'    "{name}": {opset},\n' for name, opset in later(ops).items())
    return f"{_HEAD % (', '.join(tensors), since)}{_NODE_OPS}\n{of_nodes}{_GRAPH_OPS}\n{of_graphs}"


def _method(op: OpDescription) -> str:
    head = _wrapped(f"    def {_identifier(op.name)}(", [*_parameters(op)], ") -> Node:")
    body = _wrapped(
        "        return self._op(" if op.is_of_a_node else "        return self.op(", [*_arguments(op)], ")"
    )
    return f"{head}\n{_docstring(op)}\n{body}\n"


def _parameters(op: OpDescription) -> Iterator[str]:
    """Yield the parameters of a method.

    After `self` come operands and required attributes, then keyword-only attributes. If an operand is optional or
    variadic, all attributes are keyword-only.
    """
    operands = _operand_parameters(op)
    required = [f"{_identifier(a.name)}: {_type(a)}" for a in op.attributes if a.required]
    named = [f"{_identifier(a.name)}: {_type(a)} | None = None" for a in op.attributes if not a.required]
    label = ["name: str | None = None"]
    is_plain = not any(operand.optional or operand.variadic for operand in operands)
    by_position = [*(label if op.fed else ()), *map(_parameter, operands), *(required if is_plain else ())]
    by_name = [*(() if is_plain else required), *named, *(() if op.fed else label)]
    star = [] if any(operand.variadic for operand in operands) else ["*"]
    yield from ("self", *by_position, *(star + by_name if by_name else ()))


def _operand_parameters(op: OpDescription) -> Sequence[Operand]:
    return op.operands[1:] if op.is_of_a_node else op.operands


def _parameter(operand: Operand) -> str:
    name = _identifier(operand.name)
    if operand.variadic:
        return f"*{name}: Node"
    return f"{name}: Node | None = None" if operand.optional else f"{name}: Node"


def _argument(operand: Operand) -> str:
    return f"{'*' if operand.variadic else ''}{_identifier(operand.name)}"


def _type(attribute: Attribute) -> str:
    if attribute.choices and attribute.kind == "string":
        return f"Literal[{', '.join(map(json.dumps, attribute.choices))}]"
    return _TYPES.get(attribute.kind, "Any")


def _arguments(op: OpDescription) -> Iterator[str]:
    yield json.dumps(op.name)
    yield from map(_argument, _operand_parameters(op))
    yield "name=name"
    yield from (f"{_identifier(a.name)}={_identifier(a.name)}" for a in op.attributes)


def _docstring(op: OpDescription) -> str:
    several = ["The op has several results. Read each with get_output."] if op.several else []
    gradient = [] if op.gradient.startswith("none") else [f"Gradient: {op.gradient}."]
    paragraphs = [
        *map(_filled, op.doc.split("\n\n")),
        *several,
        *map(_filled, gradient),
        *_attribute_section(op.attributes),
    ]
    text = "\n\n".join(paragraphs)
    lines = [f'"""{text}', '"""'] if "\n" in text else [f'"""{text}"""']
    return textwrap.indent("\n".join(lines), "        ", lambda line: bool(line.strip()))


def _filled(paragraph: str) -> str:
    """Return a paragraph unchanged, or rewrapped if its lines are too long for this indentation."""
    long = any(len(line) > _ROOM for line in paragraph.splitlines())
    return _rewrapped(paragraph) if long else paragraph


def _rewrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _ROOM, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _attribute_section(attributes: Iterable[Attribute]) -> Iterator[str]:
    lines = [
        _rewrapped(f"    {_identifier(a.name)}: {a.doc}{_choices(a)}{_default(a)}", indent=" " * 8) for a in attributes
    ]
    if lines:
        yield "\n".join(["Attributes:", *lines])


def _choices(attribute: Attribute) -> str:
    """Return the choices that the type does not state: a dtype may be NumPy's as well as a string."""
    return f"; one of {', '.join(attribute.choices)}" if attribute.choices and attribute.kind != "string" else ""


def _default(attribute: Attribute) -> str:
    return "" if attribute.default is None else f"; default {attribute.default!r}"


def _identifier(name: str) -> str:
    return f"{name}_" if iskeyword(name) else name


def _wrapped(before: str, parts: Sequence[str], after: str) -> str:
    """Return a parenthesised list as the formatter does: on one line, on an inner line, or with one line per part."""
    line = before + ", ".join(parts) + after
    if len(line) <= _WIDTH:
        return line
    indent = " " * (len(before) - len(before.lstrip()))
    inner = f"{indent}    {', '.join(parts)}"
    if len(inner) <= _WIDTH:
        return f"{before}\n{inner}\n{indent}{after}"
    return "\n".join([before, *(f"{indent}    {part}," for part in parts), indent + after])
