"""Op methods in Java: a class with those of nodes, one with those of graphs, and what is optional by a lambda.

The program that answers conformance cases has a switch over all of them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from clients.op_descriptions import Attribute, OpDescription, Operand, later

_WIDTH: Final = 120
#: attributes whose whole numbers keep all of their digits, in ops of an integer dtype; a test compares them
EXACT: Final = frozenset({"fill", "max", "min", "start", "step", "stop"})
#: attributes that a reader looks for behind the operands, though the wire lets them be absent: then they are empty
_SHAPE: Final = "shape"
_WRITTEN: Final = "// Written by `python -m clients.ops` from the registry of ops: edit that.\n"
_CLASS: Final = """{written}package example.gradserve;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

/** {doc} */
public abstract sealed class {name} permits {permitted} {{
    {name}() {{}}

    /** Appends a node. Operands at the end may be null: then they are absent, as attributes are. */
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
    /** The opset that graphs have an op, or an attribute as op.attribute, since. */
    static int since(String name) {{
        return switch (name) {{
{cases}            default -> 1;
        }};
    }}
"""
_PROGRAM: Final = f"""{_WRITTEN}package example.gradserve.conformance;

import example.gradserve.Graph;
import example.gradserve.Node;

/** The methods of ops, by the names of ops. */
final class Ops {{
    private Ops() {{}}

    /** Calls the method of a step's op, or for one that has none the method of any. */
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
#: what ops have for a name and is taken: a word of the language, and what Kotlin calls for %, which is the op mod
_TAKEN: Final = frozenset({"while", "rem"})
#: what reads them in a step
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
    """The class with the methods of nodes."""
    doc = "The ops that have a first operand, as methods of it."
    return _class("NodeOps", "Node", doc, _SELF, [op for op in ops if op.is_of_a_node])


def of_graphs(ops: Sequence[OpDescription]) -> str:
    """The class with the methods of graphs."""
    doc = "The ops that have no operand, or a list of them, as methods of a graph."
    return _class("GraphOps", "Graph", doc, _since(ops) + _LISTED, [op for op in ops if not op.is_of_a_node])


def _since(ops: Sequence[OpDescription]) -> str:
    cases = "".join(f'            case "{name}" -> {opset};\n' for name, opset in later(ops).items())
    return _SINCE.format(cases=cases)


def program(ops: Sequence[OpDescription]) -> str:
    """The switch of the program."""
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
    """The method with all that is required; if there is more, with operands that may be left out; with options."""
    left_out = [operand for operand in op.operands if operand.optional]
    plain = [*_required(op, last=True)]
    made = [_method(op, plain, _body(op, optional="null"))]
    if left_out:
        operands = [f"Node {_identifier(operand.name)}" for operand in left_out]
        made.append(_method(op, [*plain, *operands], _body(op, optional="named")))
    if _has_options(op):
        stating = f"Consumer<{_options_name(op)}> options"
        made.append(_method(op, [*_required(op, last=False), stating], _body(op, optional="stated")))
    return "\n".join(made)


def _method(op: OpDescription, parameters: Sequence[str], body: str) -> str:
    return f"{_doc(op, parameters)}    public Node {_identifier(op.name)}({', '.join(parameters)}) {{\n{body}    }}\n"


def _body(op: OpDescription, *, optional: str) -> str:
    """What appends the node, with what is optional left out, named by parameters, or stated by options."""
    lines, attrs = [], "new Attrs()"
    if optional == "stated":
        lines.append(f"{_options_name(op)} given = given(new {_options_name(op)}(), options);")
        attrs = "given.attrs"
    attrs += "".join(f'.with("{a.name}", {_identifier(a.name)})' for a in _positional(op))
    appended = f'append("{op.name}", {attrs}, {_operands(op, optional)})'
    lines.append(f"return {appended}{'.named(name)' if op.fed else ''};")
    return "".join(f"        {line}\n" for line in lines)


def _operands(op: OpDescription, optional: str) -> str:
    """The list of operands; `this` is the first of a node's."""
    ways = {"null": (), "named": ("{}",), "stated": ("given.{}",)}[optional]
    needed = [_identifier(o.name) for o in op.operands if not (o.optional or o.variadic)]
    left_out = [way.format(_identifier(o.name)) for o in op.operands if o.optional for way in ways]
    if op.is_of_a_node:
        return f"operands({', '.join([*needed[1:], *left_out])})"
    variadic = _variadic(op)
    if variadic is None:
        return "List.of()"
    name = _identifier(variadic.name)
    return f"operands({', '.join([name if _has_options(op) else f'List.of({name})', *needed])})"


def _variadic(op: OpDescription) -> Operand | None:
    return next((operand for operand in op.operands if operand.variadic), None)


def _positional(op: OpDescription) -> list[Attribute]:
    """Attributes that are parameters: what is required, a shape, and a list that is all that may be stated."""
    return [a for a in op.attributes if a.required or _is_positional(op, a)]


def _is_positional(op: OpDescription, attribute: Attribute) -> bool:
    return not op.fed and attribute.kind == "ints" and (attribute.name == _SHAPE or _is_alone(op))


def _is_alone(op: OpDescription) -> bool:
    return len(op.attributes) == 1 and not any(o.optional or o.variadic for o in op.operands)


def _stated(op: OpDescription) -> list[Attribute]:
    """Attributes that options have."""
    return [a for a in op.attributes if a not in _positional(op)]


def _has_options(op: OpDescription) -> bool:
    return bool(_stated(op))


def _trailing(op: OpDescription) -> bool:
    """Whether the last parameter is a list of numbers, which a caller may write one by one."""
    positional = _positional(op)
    return bool(positional) and positional[-1].kind == "ints" and not any(o.optional for o in op.operands)


def _required(op: OpDescription, *, last: bool) -> Iterator[str]:
    """Parameters that have to be there; a list is written one by one where it is the last."""
    attributes = [f"{_type(a)} {_identifier(a.name)}" for a in _positional(op)]
    if last and _trailing(op):
        attributes[-1] = attributes[-1].replace("[]", "...")
    needed = [o for o in op.operands if not (o.optional or o.variadic)][1 if op.is_of_a_node else 0 :]
    operands = [f"Node {_identifier(o.name)}" for o in needed]
    if op.fed:
        yield "String name"
    variadic = _variadic(op)
    yield from operands + attributes if variadic is None else attributes + operands
    if variadic is not None:
        yield f"{'List<Node>' if _has_options(op) else 'Node...'} {_identifier(variadic.name)}"


def _options_name(op: OpDescription) -> str:
    """The class of what is optional; calls of a client have another of the plain name."""
    name = "callOp" if op.name == "call" else _camel(op.name)
    return f"{name[:1].upper()}{name[1:]}Options"


def _options(op: OpDescription) -> str:
    """The class of what is optional, if anything is but operands."""
    if not _has_options(op):
        return ""
    name = _options_name(op)
    left_out = [_identifier(o.name) for o in op.operands if o.optional]
    fields = "".join(f"        private Node {operand};\n" for operand in left_out)
    setters = [_operand_setter(name, operand) for operand in left_out]
    setters += [_setter(name, attribute) for attribute in _stated(op)]
    return (
        f"    /** What {_camel(op.name)} takes beside what is required. */\n"
        f"    public static final class {name} {{\n"
        f"        private final Attrs attrs = new Attrs();\n{fields}\n"
        f"        private {name}() {{}}\n" + "".join(f"\n{setter}" for setter in setters) + "    }\n\n"
    )


def _operand_setter(options: str, operand: str) -> str:
    doc = _javadoc(["An operand."], [(f"@param {operand}", "a node of the same graph")], "these options", " " * 8)
    return (
        f"{doc}        public {options} {operand}(Node {operand}) {{\n"
        f"            this.{operand} = {operand};\n            return this;\n        }}\n"
    )


def _setter(options: str, attribute: Attribute) -> str:
    name = _identifier(attribute.name)
    told = f"{_sentence(attribute.doc)}{_told(attribute)}"
    doc = _javadoc([told], [(f"@param {name}", "the value")], "these options", " " * 8)
    return (
        f"{doc}        public {options} {name}({_type(attribute).replace('[]', '...')} {name}) {{\n"
        f'            attrs.with("{attribute.name}", {name});\n            return this;\n        }}\n'
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _told(attribute: Attribute) -> str:
    choices = f"; one of {', '.join(attribute.choices)}" if attribute.choices else ""
    default = "" if attribute.default is None else f"; {_literal(attribute.default)} unless stated"
    return f"{choices}{default}."


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _doc(op: OpDescription, parameters: Sequence[str]) -> str:
    several = ["It has several results, each read through getOutput."] if op.several else []
    gradient = [] if op.gradient.startswith("none") else [f"Gradient: {op.gradient}."]
    paragraphs = [*op.doc.split("\n\n"), *several, *gradient]
    paragraphs[0] = f"The op {op.name}: {paragraphs[0]}"
    told = {_identifier(o.name): _operand_told(o) for o in op.operands}
    told |= {_identifier(a.name): f"{a.doc}{_told(a)[:-1]}" for a in _positional(op)}
    told |= {"options": "states what is optional", "name": "a label for messages and look-ups; empty for none"}
    names = [parameter.split()[-1] for parameter in parameters]
    first = [f"Of its operands, {op.operands[0].name} is this node."] if op.is_of_a_node and names else []
    tags = [(f"@param {name}", told[name]) for name in names]
    return _javadoc([*paragraphs, *first], tags, "the node", " " * 4)


def _operand_told(operand: Operand) -> str:
    if operand.variadic:
        return "operands, in their order"
    return "an operand; null where it is absent" if operand.optional else "an operand"


def _javadoc(paragraphs: Iterable[str], tags: Iterable[tuple[str, str]], returned: str, indent: str) -> str:
    """A comment. What is HTML or a tag in running text is written as it stands."""
    lines = []
    for place, paragraph in enumerate(paragraphs):
        lines += [""] if place else []
        lines += _filled(f"{'<p>' if place else ''}{_escaped(paragraph)}", indent)
    lines.append("")
    for tag, text in tags:
        lines += _filled(f"{tag} {_escaped(text)}", indent)
    lines.append(f"@return {returned}")
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def _filled(text: str, indent: str) -> list[str]:
    room = _WIDTH - len(indent) - 3
    return textwrap.wrap(" ".join(text.split()), room, break_long_words=False, break_on_hyphens=False)


def _escaped(text: str) -> str:
    for sign, entity in {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "*/": "*&#47;"}.items():
        text = text.replace(sign, entity)
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)


def _case(op: OpDescription) -> str:
    """A case of the program: options are stated one by one."""
    target = "s.operand(0)" if op.is_of_a_node else "graph"
    arguments = ", ".join([*_arguments(op), *([_stating(op)] if _has_options(op) else [])])
    return f'            case "{op.name}" -> {target}.{_identifier(op.name)}({arguments});\n'


def _stating(op: OpDescription) -> str:
    stated = [f"s.operand({i}, o::{_identifier(o.name)})" for i, o in enumerate(op.operands) if o.optional]
    stated += [f's.{_READERS[_type(a)]}("{a.name}", o::{_identifier(a.name)})' for a in _stated(op)]
    if len(stated) == 1:
        return f"o -> {stated[0]}"
    return "o -> {\n" + "".join(f"                {each};\n" for each in stated) + "            }"


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
    """A name of the wire as Java writes it, where it is no word of the language."""
    made = _camel(name)
    return f"{made}_" if made in _TAKEN else made
