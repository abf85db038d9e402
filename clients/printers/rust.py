"""Op methods in Rust: operands and required attributes are positional; a second method takes options.

The conformance program has a match over all methods.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from clients.op_descriptions import Attribute, OpDescription, Operand, later

#: maximum line width, as in the formatter's settings
_WIDTH: Final = 120
#: attributes whose integers must not lose digits, in ops of an integer dtype; a test compares them
EXACT: Final = frozenset({"fill", "max", "min", "start", "step", "stop"})
_WRITTEN: Final = "Written by `python -m clients.ops` from the op registry: do not edit."
_OPS: Final = f"""//! The ops as methods. {_WRITTEN}

use crate::graph::Options;
use crate::{{%s}};

/// Returns the first opset with an op, or with an attribute as `op.attribute`.
pub(crate) fn since(name: &str) -> usize {{
    match name {{
%s        _ => 1,
    }}
}}

"""
_PROGRAM: Final = f"""//! Calls of the op methods by name. {_WRITTEN}

use gradserve_client::ops::*;
use gradserve_client::{{%s}};

use crate::steps::Step;

/// Calls the method of a step's op, or the generic method if there is none.
pub fn appended(graph: &Graph, step: &Step) -> Result<Node> {{
    Ok(match step.op.as_str() {{
"""
_ANY: Final = """        _ => step.any(graph)?,
    })
}
"""
_TYPES: Final = {
    "bool": "bool",
    "int": "i64",
    "ints": "Vec<i64>",
    "float": "f64",
    "string": "&str",
    "dtype": "DType",
    "tensor": "Tensor",
    "function": "&GraphFunction",
}
#: types whose parameters are `impl Into<…>`, and all types of the crate
_INTO: Final = frozenset({"Attribute", "DType", "Number", "Tensor", "Vec<i64>"})
_OF_THE_CRATE: Final = _INTO - {"Vec<i64>"} | {"GraphFunction"}
#: types that are passed by reference, with the owned types that a program holds
_OWNED: Final = {"&str": "String", "&GraphFunction": "GraphFunction"}
#: keywords, and names that methods use otherwise
_KEYWORDS: Final = """
as box const else enum false fn for if impl in let loop match mod move mut pub ref return self static struct super trait
true type unsafe use where while yield name options
"""
_TAKEN: Final = frozenset(_KEYWORDS.split())


def methods(ops: Sequence[OpDescription]) -> str:
    """Return the file with all methods."""
    of_nodes = "\n".join(_methods(op) for op in ops if op.is_of_a_node)
    of_graphs = "\n".join(_methods(op) for op in ops if not op.is_of_a_node)
    options = "".join(f"\n{_options(op)}" for op in ops if _has_options(op))
    imported = _imported(ops, "Graph", "Node")
    return f"{_OPS % (imported, _since(ops))}impl Node {{\n{of_nodes}}}\n\nimpl Graph {{\n{of_graphs}}}\n{options}"


def _since(ops: Sequence[OpDescription]) -> str:
    return "".join(f'        "{name}" => {opset},\n' for name, opset in later(ops).items())


def program(ops: Sequence[OpDescription]) -> str:
    """Return the match of the conformance program."""
    return _PROGRAM % _imported(ops, "Graph", "Node", "Result") + "".join(map(_arm, ops)) + _ANY


def _imported(ops: Sequence[OpDescription], *others: str) -> str:
    """Return the names to import: the given ones, and the types of attributes that the crate defines."""
    kinds = {_owned(_type(attribute)) for op in ops for attribute in op.attributes}
    return ", ".join(sorted({*others, *(kinds & _OF_THE_CRATE)}))


def _methods(op: OpDescription) -> str:
    """Return the method with what is required, and the one with options if there are any."""
    name = _identifier(op.name)
    if not _has_options(op):
        return f"{_doc(op)}{_method(name, op, [], _call(op, 'Options::default()'))}"
    plain = f"        self.{_identifier(op.name, '_with')}({', '.join([*_names(op), f'{_options_name(op)}::new()'])})"
    comment = f"    /// Appends [`{name}`](Self::{name}) with options.\n"
    with_options = [f"options: {_options_name(op)}"]
    return (
        f"{_doc(op)}{_method(name, op, [], plain)}\n"
        f"{comment}{_method(_identifier(op.name, '_with'), op, with_options, _call(op, 'options.0'))}"
    )


def _method(name: str, op: OpDescription, others: Sequence[str], body: str) -> str:
    lifetime = "<'n>" if _variadic(op) else ""
    head = _wrapped(f"    pub fn {name}{lifetime}(", ["&self", *_parameters(op), *others], ") -> Node {")
    return f"{head}\n{body}\n    }}\n"


def _call(op: OpDescription, options: str) -> str:
    """Return the call that appends the node."""
    required = "".join(_stated(a) for a in op.attributes if a.required)
    graph = "self.graph()" if op.is_of_a_node else "self"
    parts = [f'"{op.name}"', _operands(op), options + required]
    return _wrapped(f"        {graph}.typed(", parts, ").named(name)" if op.fed else ")")


def _operands(op: OpDescription) -> str:
    variadic = _variadic(op)
    fixed = [_identifier(o.name) for o in _fixed(op)]
    if op.is_of_a_node:
        fixed[0] = "self"
    if variadic is None:
        return f"[{', '.join(fixed)}]"
    rest = _identifier(variadic.name)
    return f"[{', '.join(fixed)}].into_iter().chain({rest})" if fixed else rest


def _fixed(op: OpDescription) -> list[Operand]:
    return [o for o in op.operands if not (o.optional or o.variadic)]


def _variadic(op: OpDescription) -> Operand | None:
    return next((operand for operand in op.operands if operand.variadic), None)


def _parameters(op: OpDescription) -> Iterator[str]:
    """Yield operands and required attributes."""
    if op.fed:
        yield "name: &str"
    node_type = "&Node" if _variadic(op) is None else "&'n Node"
    for operand in op.operands[op.is_of_a_node :]:
        if not operand.optional:
            kind = f"impl IntoIterator<Item = {node_type}>" if operand.variadic else node_type
            yield f"{_identifier(operand.name)}: {kind}"
    yield from (_parameter(a) for a in op.attributes if a.required)


def _names(op: OpDescription) -> Iterator[str]:
    """Yield the names of the parameters, to pass them on."""
    if op.fed:
        yield "name"
    yield from (_identifier(o.name) for o in op.operands[op.is_of_a_node :] if not o.optional)
    yield from (_identifier(a.name) for a in op.attributes if a.required)


def _has_options(op: OpDescription) -> bool:
    return any(not a.required for a in op.attributes) or any(o.optional for o in op.operands)


def _options_name(op: OpDescription) -> str:
    return f"{''.join(word.capitalize() for word in op.name.split('_'))}Options"


def _options(op: OpDescription) -> str:
    """Return the options type, with a method for each option."""
    name = _options_name(op)
    owner = "Node" if op.is_of_a_node else "Graph"
    operands = [_operand_setter(i, o) for i, o in enumerate(op.operands) if o.optional]
    attributes = [_attribute_setter(a) for a in op.attributes if not a.required]
    return (
        f"/// Options of [`{owner}::{_identifier(op.name, '_with')}`].\n"
        f"#[derive(Clone, Debug, Default)]\npub struct {name}(Options);\n\nimpl {name} {{\n"
        "    /// Creates options without values.\n    pub fn new() -> Self {\n        Self::default()\n    }\n"
        f"{''.join([*operands, *attributes])}}}\n"
    )


def _operand_setter(position: int, operand: Operand) -> str:
    name = _identifier(operand.name)
    return (
        f"\n    /// Sets operand {position}, which is optional.\n"
        f"    pub fn {name}(self, {name}: &Node) -> Self {{\n        Self(self.0.operand({position}, {name}))\n    }}\n"
    )


def _attribute_setter(attribute: Attribute) -> str:
    name = _identifier(attribute.name)
    comment = _comment(f"{attribute.doc[:1].upper()}{attribute.doc[1:]}{_value_notes(attribute)}.")
    return (
        f"\n{comment}    pub fn {name}(self, {_parameter(attribute)}) -> Self {{\n"
        f"        Self(self.0{_stated(attribute)})\n    }}\n"
    )


def _value_notes(attribute: Attribute) -> str:
    choices = f"; one of {', '.join(attribute.choices)}" if attribute.choices else ""
    default = "" if attribute.default is None else f"; default {_literal(attribute.default)}"
    return choices + default


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _type(attribute: Attribute) -> str:
    if attribute.name in EXACT and attribute.kind == "float":
        return "Number"
    return _TYPES.get(attribute.kind, "Attribute")


def _parameter(attribute: Attribute) -> str:
    kind = _type(attribute)
    return f"{_identifier(attribute.name)}: {f'impl Into<{kind}>' if kind in _INTO else kind}"


def _stated(attribute: Attribute) -> str:
    """Return the method call that sets an attribute."""
    kind = _type(attribute)
    method = f"made::<{kind}>" if kind in _INTO else "with"
    return f'.{method}("{attribute.name}", {_identifier(attribute.name)})'


def _doc(op: OpDescription) -> str:
    several = ["The op has several results. Read each with `get_output`."] if op.several else []
    gradient = [] if op.gradient.startswith("none") else [f"Gradient: {op.gradient}."]
    required = [f"`{_identifier(a.name)}`: {a.doc}{_value_notes(a)}." for a in op.attributes if a.required]
    return "    ///\n".join(map(_comment, [*op.doc.split("\n\n"), *several, *gradient, *required]))


def _comment(text: str) -> str:
    lines = textwrap.wrap(_plain(text), _WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    return "".join(f"    /// {line}\n" for line in lines)


def _plain(text: str) -> str:
    """Escape brackets in text, so that they are not links or tags. Quoted code is unchanged."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\[\]<>*])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _arm(op: OpDescription) -> str:
    """Return an arm of the program, which sets options one by one."""
    if not _has_options(op):
        call = _appending(op, _identifier(op.name), [])
        line = f'        "{op.name}" => {call},\n'
        if "\n" in call:
            return textwrap.indent(textwrap.dedent(f"    {line}"), "        ")
        return line if len(line) <= _WIDTH + 1 else _block(op, [call])
    lines = [f"let o = {_options_name(op)}::new();"]
    for i, operand in enumerate(op.operands):
        if operand.optional:
            lines.append(f"let o = step.set_operand(o, {i}, |o, node| o.{_identifier(operand.name)}(node));")
    lines += [_setting(a) for a in op.attributes if not a.required]
    lines.append(_appending(op, _identifier(op.name, "_with"), ["o"]))
    return _block(op, lines)


def _block(op: OpDescription, lines: Sequence[str]) -> str:
    return f'        "{op.name}" => {{\n' + "".join(f"            {line}\n" for line in lines) + "        }\n"


def _setting(attribute: Attribute) -> str:
    kind, name = _type(attribute), _identifier(attribute.name)
    argument = "&v" if kind in _OWNED else "v"
    return f'let o = step.set(o, "{attribute.name}", |o, v: {_owned(kind)}| o.{name}({argument}))?;'


def _appending(op: OpDescription, name: str, others: Sequence[str]) -> str:
    fixed = [f"step.operand({i})" for i in range(len(_fixed(op)))]
    rest = [f"&step.nodes[{len(fixed)}..]"] if _variadic(op) else []
    receiver = fixed.pop(0) if op.is_of_a_node else "graph"
    required = [_required(a) for a in op.attributes if a.required]
    fed = ["&step.name"] if op.fed else []
    return _wrapped(f"            {receiver}.{name}(", [*fed, *fixed, *rest, *required, *others], ")").lstrip()


def _required(attribute: Attribute) -> str:
    kind = _type(attribute)
    read = f'step.attr::<{_owned(kind)}>("{attribute.name}")?'
    return f"&{read}" if kind in _OWNED else read


def _owned(kind: str) -> str:
    """Return the owned type that a program holds."""
    return _OWNED.get(kind, kind)


def _identifier(name: str, ending: str = "") -> str:
    """Return the wire's name, unless it is taken."""
    identifier = name + ending
    return f"{identifier}_" if identifier in _TAKEN else identifier


def _wrapped(before: str, parts: Sequence[str], after: str) -> str:
    """Return a parenthesised list as the formatter does: on one line, or with one line per part."""
    line = before + ", ".join(parts) + after
    if len(line) <= _WIDTH:
        return line
    indent = " " * (len(before) - len(before.lstrip()))
    return "\n".join([before, *(f"{indent}    {part}," for part in parts), indent + after])
