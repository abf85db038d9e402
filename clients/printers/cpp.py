"""Op methods in C++: operands and required attributes are positional, the rest is a struct for designated initializers.

Declarations are in a header, definitions in one file. The conformance program has a table of all methods.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from clients.op_descriptions import Attribute, OpDescription, Operand, later
from clients.printers.go import EXACT

_WIDTH: Final = 120
_WRITTEN: Final = "// Written by `python -m clients.ops` from the op registry: do not edit.\n"
_HEADER: Final = f"""{_WRITTEN}#pragma once

#include <gradserve/appender.hpp>
#include <gradserve/graph_function.hpp>
#include <gradserve/json.hpp>
#include <gradserve/listed.hpp>
#include <gradserve/node.hpp>
#include <gradserve/tensor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradserve {{
"""
_CLASS: Final = """
/// The ops. Each method appends a node and returns its handle.
class Ops : public Appender {
public:
"""
_END_OF_HEADER: Final = """
protected:
    explicit Ops(std::shared_ptr<GraphState> state) : Appender(std::move(state)) {}
};

}  // namespace gradserve
"""
_SOURCE: Final = f"""{_WRITTEN}#include <gradserve/generated/ops.hpp>

#include "../opset.hpp"

#include <map>
#include <string_view>

namespace gradserve {{

std::int64_t opset_of_name(std::string_view name) {{
    static const std::map<std::string_view, std::int64_t> since{{
%s    }};
    const auto found = since.find(name);
    return found == since.end() ? first_opset : found->second;
}}
"""
_PROGRAM: Final = f"""{_WRITTEN}#include "../step.hpp"

#include <functional>
#include <map>
#include <string>

namespace conformance {{

using Append = std::function<gs::Node(gs::Graph&, const Step&)>;

static const std::map<std::string, Append>& methods() {{
    static const std::map<std::string, Append> all{{
"""
_ANY: Final = """    };
    return all;
}

gs::Node appended(gs::Graph& graph, const Step& step) {
    const auto found = methods().find(step.op());
    return found == methods().end() ? step.any(graph) : found->second(graph, step);
}

}  // namespace conformance
"""
_TYPES: Final = {
    "bool": "bool",
    "int": "std::int64_t",
    "ints": "std::vector<std::int64_t>",
    "float": "double",
    "string": "std::string",
    "dtype": "DType",
    "tensor": "Tensor",
    "function": "GraphFunction",
}
#: types that are passed by value
_SMALL: Final = frozenset({"bool", "std::int64_t", "double"})
#: keywords, and names that methods use otherwise
_TAKEN: Final = frozenset(
    {"and", "auto", "default", "name", "not", "operator", "options", "or", "switch", "union", "while", "xor"}
)


def header(ops: Sequence[OpDescription]) -> str:
    """Return the declarations of all methods, and their options."""
    options = "".join(f"\n{_options(op)}" for op in ops if _has_options(op))
    methods = "\n".join(f"{_doc(op)}    {_declaration(op)};\n" for op in ops)
    return _HEADER + options + _CLASS + methods + _END_OF_HEADER


def source(ops: Sequence[OpDescription]) -> str:
    """Return the definitions of all methods."""
    since = "".join(f'        {{"{name}", {opset}}},\n' for name, opset in later(ops).items())
    return _SOURCE % since + "".join(map(_definition, ops)) + "\n}  // namespace gradserve\n"


def program(ops: Sequence[OpDescription]) -> str:
    """Return the table of the conformance program."""
    return _PROGRAM + "".join(map(_row, ops)) + _ANY


def _declaration(op: OpDescription) -> str:
    return _wrapped(f"Node {_identifier(op.name)}(", _parameters(op, defaults=True), ")", indent=4)


def _definition(op: OpDescription) -> str:
    head = _wrapped(f"Node Ops::{_identifier(op.name)}(", _parameters(op, defaults=False), ")", indent=0)
    named = ".named(name)" if op.fed else ""
    call = _wrapped(f'return typed("{op.name}", {_operands(op)}, {{', _stated(op), f"}}){named};", indent=4)
    if _variadic(op) is None or not _fixed(op):
        return f"\n{head} {{\n    {call}\n}}\n"
    (first,) = _fixed(op)
    rest = _identifier(_variadic_of(op).name)
    listed = f"    std::vector<Node> every{{{first}}};\n    every.insert(every.end(), {rest}.begin(), {rest}.end());\n"
    return f"\n{head} {{\n{listed}    {call}\n}}\n"


def _stated(op: OpDescription) -> Iterator[str]:
    for attribute in op.attributes:
        name = _identifier(attribute.name)
        yield f'{{"{attribute.name}", {name if attribute.required else f"options.{name}"}}}'


def _fixed(op: OpDescription) -> list[str]:
    return [_identifier(operand.name) for operand in op.operands if not (operand.optional or operand.variadic)]


def _operands(op: OpDescription) -> str:
    """Return the operands: required ones, and optional ones from the options."""
    if _variadic(op) is not None:
        return "every" if _fixed(op) else _identifier(_variadic_of(op).name)
    optional = [f"options.{_identifier(operand.name)}" for operand in op.operands if operand.optional]
    return f"{{{', '.join(_fixed(op) + optional)}}}" if op.operands else "{}"


def _parameters(op: OpDescription, *, defaults: bool) -> list[str]:
    """Return operands, required attributes and options. If operands are a list, required attributes come first."""
    required = [f"{_passed(_type(a))} {_identifier(a.name)}" for a in op.attributes if a.required]
    operands = [f"const Node& {name}" for name in _fixed(op)]
    parameters = required + operands if _variadic(op) is not None else operands + required
    if op.fed:
        parameters.insert(0, f"const std::string& name{' = {}' if defaults else ''}")
    if _variadic(op) is not None:
        parameters.append(f"const std::vector<Node>& {_identifier(_variadic_of(op).name)}")
    if _has_options(op):
        parameters.append(f"const {_camel(op.name)}Options& options{' = {}' if defaults else ''}")
    return parameters


def _passed(kind: str) -> str:
    return kind if kind in _SMALL else f"const {kind}&"


def _variadic(op: OpDescription) -> Operand | None:
    return next((operand for operand in op.operands if operand.variadic), None)


def _variadic_of(op: OpDescription) -> Operand:
    operand = _variadic(op)
    assert operand is not None, "asked of ops that have one"
    return operand


def _has_options(op: OpDescription) -> bool:
    return any(not a.required for a in op.attributes) or any(o.optional for o in op.operands)


def _options(op: OpDescription) -> str:
    """Return the options struct."""
    fields = [f"    std::optional<Node> {_identifier(o.name)}{{}};\n" for o in op.operands if o.optional]
    for attribute in op.attributes:
        if not attribute.required:
            comment = _comment(f"{attribute.doc[:1].upper()}{attribute.doc[1:]}{_value_notes(attribute)}.", indent=4)
            fields.append(f"{comment}    {_optional(attribute)} {_identifier(attribute.name)}{{}};\n")
    name = _camel(op.name)
    return f"/// Options of {op.name}.\nstruct {name}Options {{\n{''.join(fields)}}};\n"


def _optional(attribute: Attribute) -> str:
    return "Ints" if attribute.kind == "ints" else f"std::optional<{_type(attribute)}>"


def _value_notes(attribute: Attribute) -> str:
    choices = f"; one of {', '.join(attribute.choices)}" if attribute.choices else ""
    default = "" if attribute.default is None else f"; default {_literal(attribute.default)}"
    return choices + default


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _doc(op: OpDescription) -> str:
    several = ["The op has several results. Read each with get_output."] if op.several else []
    gradient = [] if op.gradient.startswith("none") else [f"Gradient: {op.gradient}."]
    required = [f"{_identifier(a.name)}: {a.doc}{_value_notes(a)}." for a in op.attributes if a.required]
    paragraphs = [*op.doc.split("\n\n"), *several, *gradient, *required]
    return "    ///\n".join(_comment(paragraph, indent=4) for paragraph in paragraphs)


def _comment(text: str, indent: int) -> str:
    before = f"{' ' * indent}/// "
    lines = textwrap.wrap(text, _WIDTH - len(before), break_long_words=False, break_on_hyphens=False)
    return "".join(f"{before}{line}\n" for line in lines)


def _wrapped(head: str, parts: Sequence[str] | Iterator[str], end: str, indent: int) -> str:
    """Return a list on one line, or with one line per part if that is too long."""
    items = list(parts)
    line = head + ", ".join(items) + end
    if len(line) + indent + 2 <= _WIDTH:
        return line
    inner = " " * (indent + 4)
    return f"{head}\n" + ",\n".join(inner + part for part in items) + end


def _row(op: OpDescription) -> str:
    """Return a row of the program, which sets options one by one."""
    lines = [f'{{"{op.name}", [](gs::Graph& graph, const Step& step) {{']
    if _has_options(op):
        lines.append(f"    gs::{_camel(op.name)}Options options;")
        lines += [
            f"    options.{_identifier(o.name)} = step.operand_if_any({i});"
            for i, o in enumerate(op.operands)
            if o.optional
        ]
        lines += [f'    step.read("{a.name}", options.{_identifier(a.name)});' for a in op.attributes if not a.required]
    lines.append("    " + _wrapped(f"return graph.{_identifier(op.name)}(", _arguments(op), ");", indent=12))
    lines.append("}},")
    return "".join(f"        {line}\n" for line in lines)


def _arguments(op: OpDescription) -> Iterator[str]:
    required = [f'step.attr<{_qualified(_type(a))}>("{a.name}")' for a in op.attributes if a.required]
    fixed = [f"step.operand({i})" for i, _ in enumerate(_fixed(op))]
    if op.fed:
        yield "step.name()"
    yield from required + fixed if _variadic(op) is not None else fixed + required
    if _variadic(op) is not None:
        yield f"step.operands_from({len(fixed)})"
    if _has_options(op):
        yield "options"


def _qualified(kind: str) -> str:
    return kind if kind.startswith("std::") or kind in _SMALL else f"gs::{kind}"


def _type(attribute: Attribute) -> str:
    if attribute.name in EXACT and attribute.kind == "float":
        return "Number"
    return _TYPES.get(attribute.kind, "Json")


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def _identifier(name: str) -> str:
    """Return the wire's name, unless it is taken."""
    return f"{name}_" if name in _TAKEN else name
