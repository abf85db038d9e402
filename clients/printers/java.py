"""Op methods in Java: one class for methods of nodes and one for graphs, with options set in a lambda.

The conformance program has a switch over all methods.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from clients.op_descriptions import Attribute, OpDescription, Operand, later

_WIDTH: Final = 120
#: attributes whose integers must not lose digits, in ops of an integer dtype; a test compares them
EXACT: Final = frozenset({"fill", "max", "min", "start", "step", "stop"})
#: attribute that is positional although the wire allows it to be absent: an absent shape is an empty one
_SHAPE: Final = "shape"
_WRITTEN: Final = "// Written by `python -m clients.ops` from the op registry: do not edit.\n"
_CLASS: Final = """{written}package example.gradserve;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

/** {doc} */
public abstract sealed class {name} permits {permitted} {{
    {name}() {{}}

    /** Appends a node. Null attributes, and null operands at the end, are absent. */
    abstract Node append(String op, Attrs attrs, List<Node> operands);
{helpers}{methods}}}
"""
_GIVEN: Final = """
    private static <T> T given(T options, Consumer<? super T> stating) {
        stating.accept(options);
        return options;
    }
"""
_SELF: Final = """
    private List<Node> operands(Node... others) {
        List<Node> operands = new ArrayList<>(others.length + 1);
        operands.add((Node) this);
        Collections.addAll(operands, others);
        return operands;
    }
"""
_LISTED: Final = """
    private static List<Node> operands(List<Node> others, Node... first) {
        List<Node> operands = new ArrayList<>(Arrays.asList(first));
        operands.addAll(others);
        return operands;
    }
"""
_SINCE: Final = """
    /** Returns the first opset with an op, or with an attribute as op.attribute. */
    static int since(String name) {{
        return switch (name) {{
{cases}            default -> 1;
        }};
    }}
"""
_PROGRAM: Final = f"""{_WRITTEN}package example.gradserve.conformance;

import example.gradserve.Graph;
import example.gradserve.Node;

/** Calls the methods of ops by name. */
final class Ops {{
    private Ops() {{}}

    /** Calls the method of a step's op, or the generic method if there is none. */
    static Node appended(Graph graph, Step s) {{
        return switch (s.op()) {{
"""
_ANY: Final = """            default -> s.any(graph);
        };
    }
}
"""
_TYPES: Final = {
    "bool": "boolean",
    "int": "long",
    "ints": "long[]",
    "float": "double",
    "string": "String",
    "dtype": "DType",
    "tensor": "Tensor",
    "function": "GraphFunction",
}
#: op names that are taken: a keyword, and the method that Kotlin calls for %, which must be the op mod
_TAKEN: Final = frozenset({"while", "rem"})
#: methods of a step that read attributes, by type
_READERS: Final = {
    "boolean": "truth",
    "long": "whole",
    "long[]": "wholes",
    "double": "real",
    "String": "text",
    "DType": "dtype",
    "Tensor": "tensor",
    "GraphFunction": "function",
    "Number": "number",
    "Object": "value",
}


def of_nodes(ops: Sequence[OpDescription]) -> str:
    """Return the class with the methods of nodes."""
    doc = "The ops as methods of their first operand."
    return _class("NodeOps", "Node", doc, _SELF, [op for op in ops if op.is_of_a_node])


def of_graphs(ops: Sequence[OpDescription]) -> str:
    """Return the class with the methods of graphs."""
    doc = "The ops without operands, and with a list of operands, as methods of a graph."
    return _class("GraphOps", "Graph", doc, _since(ops) + _LISTED, [op for op in ops if not op.is_of_a_node])


def _since(ops: Sequence[OpDescription]) -> str:
    cases = "".join(f'            case "{name}" -> {opset};\n' for name, opset in later(ops).items())
    return _SINCE.format(cases=cases)


def program(ops: Sequence[OpDescription]) -> str:
    """Return the switch of the conformance program."""
    return _PROGRAM + "".join(map(_case, ops)) + _ANY


def _class(name: str, permitted: str, doc: str, helper: str, ops: Sequence[OpDescription]) -> str:
    text = _CLASS.format(
        written=_WRITTEN, doc=doc, name=name, permitted=permitted, helpers=_GIVEN + helper,
        methods="".join(f"\n{_options(op)}{_methods(op)}" for op in ops),
    )  # fmt: skip
    imports = re.findall(r"import java\.util\.(\w+);\n", text)
    for unused in (word for word in imports if len(re.findall(rf"\b{word}\b", text)) == 1):
        text = text.replace(f"import java.util.{unused};\n", "")
    return text


def _methods(op: OpDescription) -> str:
    """Return the overloads of an op: with what is required, with optional operands, and with options."""
    optional = [operand for operand in op.operands if operand.optional]
    required = [*_required(op, last=True)]
    overloads = [_method(op, required, _body(op, optional="null"))]
    if optional:
        operands = [f"Node {_identifier(operand.name)}" for operand in optional]
        overloads.append(_method(op, [*required, *operands], _body(op, optional="named")))
    if _has_options(op):
        consumer = f"Consumer<{_options_name(op)}> options"
        overloads.append(_method(op, [*_required(op, last=False), consumer], _body(op, optional="stated")))
    return "\n".join(overloads)


def _method(op: OpDescription, parameters: Sequence[str], body: str) -> str:
    return f"{_doc(op, parameters)}    public Node {_identifier(op.name)}({', '.join(parameters)}) {{\n{body}    }}\n"


def _body(op: OpDescription, *, optional: str) -> str:
    """Return the body that appends the node.

    `optional` tells whether optional operands are null, parameters or options.
    """
    lines, attrs = [], "new Attrs()"
    if optional == "stated":
        lines.append(f"{_options_name(op)} given = given(new {_options_name(op)}(), options);")
        attrs = "given.attrs"
    attrs += "".join(f'.with("{a.name}", {_identifier(a.name)})' for a in _positional(op))
    appended = f'append("{op.name}", {attrs}, {_operands(op, optional)})'
    lines.append(f"return {appended}{'.named(name)' if op.fed else ''};")
    return "".join(f"        {line}\n" for line in lines)


def _operands(op: OpDescription, optional: str) -> str:
    """Return the list of operands; `this` is the first operand of a node's method."""
    templates = {"null": (), "named": ("{}",), "stated": ("given.{}",)}[optional]
    required = [_identifier(o.name) for o in op.operands if not (o.optional or o.variadic)]
    optional_operands = [
        template.format(_identifier(o.name)) for o in op.operands if o.optional for template in templates
    ]
    if op.is_of_a_node:
        return f"operands({', '.join([*required[1:], *optional_operands])})"
    variadic = _variadic(op)
    if variadic is None:
        return "List.of()"
    name = _identifier(variadic.name)
    return f"operands({', '.join([name if _has_options(op) else f'List.of({name})', *required])})"


def _variadic(op: OpDescription) -> Operand | None:
    return next((operand for operand in op.operands if operand.variadic), None)


def _positional(op: OpDescription) -> list[Attribute]:
    """Return the attributes that are parameters: required ones, a shape, and a list that is the only attribute."""
    return [a for a in op.attributes if a.required or _is_positional(op, a)]


def _is_positional(op: OpDescription, attribute: Attribute) -> bool:
    return not op.fed and attribute.kind == "ints" and (attribute.name == _SHAPE or _is_alone(op))


def _is_alone(op: OpDescription) -> bool:
    return len(op.attributes) == 1 and not any(o.optional or o.variadic for o in op.operands)


def _option_attributes(op: OpDescription) -> list[Attribute]:
    """Return the attributes that options have."""
    return [a for a in op.attributes if a not in _positional(op)]


def _has_options(op: OpDescription) -> bool:
    return bool(_option_attributes(op))


def _trailing(op: OpDescription) -> bool:
    """Return whether the last parameter is a list of numbers, which may be varargs."""
    positional = _positional(op)
    return bool(positional) and positional[-1].kind == "ints" and not any(o.optional for o in op.operands)


def _required(op: OpDescription, *, last: bool) -> Iterator[str]:
    """Yield the required parameters. A trailing list is varargs if it is `last`."""
    attributes = [f"{_type(a)} {_identifier(a.name)}" for a in _positional(op)]
    if last and _trailing(op):
        attributes[-1] = attributes[-1].replace("[]", "...")
    required = [o for o in op.operands if not (o.optional or o.variadic)][1 if op.is_of_a_node else 0 :]
    operands = [f"Node {_identifier(o.name)}" for o in required]
    if op.fed:
        yield "String name"
    variadic = _variadic(op)
    yield from operands + attributes if variadic is None else attributes + operands
    if variadic is not None:
        yield f"{'List<Node>' if _has_options(op) else 'Node...'} {_identifier(variadic.name)}"


def _options_name(op: OpDescription) -> str:
    """Return the options class. The op `call` has its own, since a client's calls use the plain name."""
    name = "callOp" if op.name == "call" else _camel(op.name)
    return f"{name[:1].upper()}{name[1:]}Options"


def _options(op: OpDescription) -> str:
    """Return the options class, or nothing if only operands are optional."""
    if not _has_options(op):
        return ""
    name = _options_name(op)
    optional = [_identifier(o.name) for o in op.operands if o.optional]
    fields = "".join(f"        private Node {operand};\n" for operand in optional)
    setters = [_operand_setter(name, operand) for operand in optional]
    setters += [_setter(name, attribute) for attribute in _option_attributes(op)]
    return (
        f"    /** Options of {_camel(op.name)}. */\n"
        f"    public static final class {name} {{\n"
        f"        private final Attrs attrs = new Attrs();\n{fields}\n"
        f"        private {name}() {{}}\n" + "".join(f"\n{setter}" for setter in setters) + "    }\n\n"
    )


def _operand_setter(options: str, operand: str) -> str:
    doc = _javadoc(["Sets an operand."], [(f"@param {operand}", "a node of the same graph")], "these options", " " * 8)
    return (
        f"{doc}        public {options} {operand}(Node {operand}) {{\n"
        f"            this.{operand} = {operand};\n            return this;\n        }}\n"
    )


def _setter(options: str, attribute: Attribute) -> str:
    name = _identifier(attribute.name)
    text = f"{_sentence(attribute.doc)}{_value_notes(attribute)}"
    doc = _javadoc([text], [(f"@param {name}", "the value")], "these options", " " * 8)
    return (
        f"{doc}        public {options} {name}({_type(attribute).replace('[]', '...')} {name}) {{\n"
        f'            attrs.with("{attribute.name}", {name});\n            return this;\n        }}\n'
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _value_notes(attribute: Attribute) -> str:
    choices = f"; one of {', '.join(attribute.choices)}" if attribute.choices else ""
    default = "" if attribute.default is None else f"; default {_literal(attribute.default)}"
    return f"{choices}{default}."


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _doc(op: OpDescription, parameters: Sequence[str]) -> str:
    several = ["The op has several results. Read each with getOutput."] if op.several else []
    gradient = [] if op.gradient.startswith("none") else [f"Gradient: {op.gradient}."]
    paragraphs = [*op.doc.split("\n\n"), *several, *gradient]
    paragraphs[0] = f"The op {op.name}: {paragraphs[0]}"
    notes = {_identifier(o.name): _operand_note(o) for o in op.operands}
    notes |= {_identifier(a.name): f"{a.doc}{_value_notes(a)[:-1]}" for a in _positional(op)}
    notes |= {"options": "sets options", "name": "a label for messages and lookups; empty for none"}
    names = [parameter.split()[-1] for parameter in parameters]
    first = [f"This node is the operand {op.operands[0].name}."] if op.is_of_a_node and names else []
    tags = [(f"@param {name}", notes[name]) for name in names]
    return _javadoc([*paragraphs, *first], tags, "the node", " " * 4)


def _operand_note(operand: Operand) -> str:
    if operand.variadic:
        return "operands in order"
    return "an operand; null if it is absent" if operand.optional else "an operand"


def _javadoc(paragraphs: Iterable[str], tags: Iterable[tuple[str, str]], result: str, indent: str) -> str:
    """Return a comment, in which HTML and tags of the text are escaped."""
    lines = []
    for i, paragraph in enumerate(paragraphs):
        lines += [""] if i else []
        lines += _filled(f"{'<p>' if i else ''}{_escaped(paragraph)}", indent)
    lines.append("")
    for tag, text in tags:
        lines += _filled(f"{tag} {_escaped(text)}", indent)
    lines.append(f"@return {result}")
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def _filled(text: str, indent: str) -> list[str]:
    room = _WIDTH - len(indent) - 3
    return textwrap.wrap(" ".join(text.split()), room, break_long_words=False, break_on_hyphens=False)


def _escaped(text: str) -> str:
    for sign, entity in {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "*/": "*&#47;"}.items():
        text = text.replace(sign, entity)
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)


def _case(op: OpDescription) -> str:
    """Return a case of the program, which states options one by one."""
    target = "s.operand(0)" if op.is_of_a_node else "graph"
    arguments = ", ".join([*_arguments(op), *([_options_lambda(op)] if _has_options(op) else [])])
    return f'            case "{op.name}" -> {target}.{_identifier(op.name)}({arguments});\n'


def _options_lambda(op: OpDescription) -> str:
    setters = [f"s.operand({i}, o::{_identifier(o.name)})" for i, o in enumerate(op.operands) if o.optional]
    setters += [f's.{_READERS[_type(a)]}("{a.name}", o::{_identifier(a.name)})' for a in _option_attributes(op)]
    if len(setters) == 1:
        return f"o -> {setters[0]}"
    return "o -> {\n" + "".join(f"                {each};\n" for each in setters) + "            }"


def _arguments(op: OpDescription) -> Iterator[str]:
    attributes = [f's.{_READERS[_type(a)]}("{a.name}")' for a in _positional(op)]
    fixed = [i for i, o in enumerate(op.operands) if not (o.variadic or (o.optional and _has_options(op)))]
    operands = [f"s.operand({i})" for i in fixed[1 if op.is_of_a_node else 0 :]]
    if op.fed:
        yield "s.name()"
    variadic = _variadic(op)
    yield from operands + attributes if variadic is None else attributes + operands
    if variadic is not None:
        rest = f"s.operandsFrom({len(fixed)})"
        yield rest if _has_options(op) else f"{rest}.toArray(Node[]::new)"


def _type(attribute: Attribute) -> str:
    if attribute.name in EXACT and attribute.kind == "float":
        return "Number"
    return _TYPES.get(attribute.kind, "Object")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def _identifier(name: str) -> str:
    """Return the wire's name in camel case, unless it is taken."""
    identifier = _camel(name)
    return f"{identifier}_" if identifier in _TAKEN else identifier
