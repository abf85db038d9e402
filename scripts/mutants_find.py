"""Mutants of a module: small plausible faults, found in its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

from scripts.mutants_cost import cost_only

KINDS = ("sign", "axis", "constant", "comparison", "operator")

# Left out are code that documentation tests or the type checker cover, code whose mutation no run can detect, and
# inputs of tests.
LEFT_OUT_NAMES = {"cost", "temporaries", "samples", "truths", "gradient", "since", "doc"}
LEFT_OUT_CALLS = {"Sample", "Truth", "Real", "Ints", "Bools", "Words"}
LEFT_OUT_ARGUMENTS = {"strict", "doc"}
LEFT_OUT_FIELDS = {"annotation", "returns", "bases", "decorator_list"}

OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Slot:
    """Position of an expression in the tree: a field of its parent, or an entry of a list field."""

    parent: ast.AST
    field: str
    index: int | None
    #: names of the classes and functions around it, outermost first
    scope: tuple[str, ...] = ()
    #: names that the statement around it assigns; None inside functions
    targets: tuple[str, ...] | None = ()

    @property
    def node(self) -> Any:
        """Node at this position."""
        value = getattr(self.parent, self.field)
        return value if self.index is None else value[self.index]

    def put(self, node: ast.AST) -> None:
        """Replace the node at this position."""
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


@dataclass(frozen=True)
class Mutant:
    """One fault at one position in a module."""

    kind: str
    path: Path
    slot: Slot = field(repr=False)
    before: ast.expr = field(repr=False)
    after: ast.expr = field(repr=False)
    tree: ast.Module = field(repr=False)
    #: the smallest informative expression around the position, before and after
    shown: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        """Describe the mutant without a line number, so that the text survives changes to other lines."""
        scope = ".".join(self.slot.scope) or "module"
        return f"{self.path.parent.name}/{self.path.name} {scope}: `{self.shown[0]}` → `{self.shown[1]}`"

    def code(self) -> CodeType:
        """Compile the module with the fault, and restore the tree."""
        self.slot.put(self.after)
        try:
            return compile(ast.fix_missing_locations(self.tree), str(self.path), "exec")
        finally:
            self.slot.put(self.before)


def find_mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    results, left_out = set(_results(tree)), only_left_out(tree)
    mutants = []
    for context, slot in _slots(tree, tree, (), ()):
        if not left_out.isdisjoint((*slot.scope[:1], *(slot.targets or ()))):
            continue
        for kind, after in [*_mistakes(slot), *(_negated(slot.node) if slot.node in results else ())]:
            before = slot.node
            located = ast.copy_location(
                copy.copy(after), before
            )  # copy, because a part of `before` keeps its own location
            mutants.append(Mutant(kind, path, slot, before, located, tree, _shown(slot, context, located)))
    return mutants


def only_left_out(tree: ast.Module) -> set[str]:
    """Return private names of a module that only left-out code reads, directly or indirectly."""
    defined = [(set(_defined(statement)), set(_read(statement))) for statement in tree.body]
    names_left_out = {name for names, _ in defined for name in names if name.startswith("_")}
    while needed := {
        name for names, reads in defined if not names or not names <= names_left_out for name in reads & names_left_out
    }:
        names_left_out -= needed
    return names_left_out


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        yield from assigned(statement)
    elif (
        isinstance(statement, ast.FunctionDef) and not statement.decorator_list
    ):  # a decorator may register it in a table
        yield statement.name


def _read(node: ast.AST) -> Iterator[str]:
    """Yield names that are read outside left-out code."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        if not _is_left_out(child):
            yield from _read(child)


def _shown(slot: Slot, context: ast.AST, after: ast.AST) -> tuple[str, str]:
    """Return the expression around a position before and after, on one line."""
    before, text = slot.node, _text(context)
    slot.put(after)
    try:
        return text, _text(after if context is before else context)
    finally:
        slot.put(before)


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _slots(node: ast.AST, context: ast.AST, scope: tuple[str, ...], targets: tuple[str, ...] | None) -> Iterator[Any]:
    """Yield (expression to show, slot) for every expression that counts, from top to bottom."""
    if _is_left_out(node):
        return
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        scope, targets = (*scope, node.name), () if isinstance(node, ast.ClassDef) else None
    elif isinstance(node, ast.Assign | ast.AnnAssign) and targets is not None:
        targets = tuple(assigned(node))
    for name, value in ast.iter_fields(node):
        if name in LEFT_OUT_FIELDS:
            continue
        entries: list[tuple[int | None, Any]] = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in entries:
            if isinstance(child, ast.expr):
                slot = Slot(node, name, index, scope, targets)
                yield (context if isinstance(context, ast.expr) else child), slot
                if _number(child) is not None:
                    continue
                yield from _slots(child, _context(child, context), scope, targets)
            elif isinstance(child, ast.AST):
                yield from _slots(child, child, scope, targets)


def _context(child: ast.expr, context: ast.AST) -> ast.AST:
    """Return the expression to show for the inside of `child`: small ones whole, large ones only by their parts."""
    if isinstance(context, ast.expr) and len(_text(context)) <= 60:
        return context
    return child


def assigned(statement: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    """Yield the names that a statement assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in cost_only()
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return bool(LEFT_OUT_NAMES & set(assigned(node)))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in LEFT_OUT_CALLS
    if isinstance(node, ast.keyword):
        return node.arg in LEFT_OUT_ARGUMENTS
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom)


def _mistakes(slot: Slot) -> Iterator[tuple[str, ast.expr]]:
    """Yield (kind, replacement) for a position."""
    node = slot.node
    if (value := _number(node)) is not None:
        yield from _constants(slot, value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign", node.operand
    elif isinstance(node, ast.Compare):
        yield from _comparisons(node)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not isinstance(node.left, ast.JoinedStr):
        yield "operator", ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield "operator", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.Call):
        yield from _axes(node)
    if slot.field == "test" and not isinstance(node, ast.Compare | ast.UnaryOp):
        yield "comparison", ast.UnaryOp(ast.Not(), node)


def _results(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield cotangents that a rule returns, and partial derivatives, whose sign may be wrong as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            yield node.body
        elif isinstance(node, ast.FunctionDef) and node.name == "vjp":
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and isinstance(inner.value, ast.Tuple):
                    yield from inner.value.elts


def _negated(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.UnaryOp | ast.Starred) and getattr(node, "value", 0) is not None:
        yield "sign", ast.UnaryOp(ast.USub(), node)


def _constants(slot: Slot, value: object) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int | float) and value + 1 != value:  # adding 1 to 1e30 changes nothing
        yield "constant", ast.Constant(value + 1)
        if _names_an_axis(slot):
            yield "axis", ast.Constant(value - 1)


def _number(node: ast.AST) -> int | float | None:
    """Return the value of a number literal with its sign, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, int | float) else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else None


def _names_an_axis(slot: Slot) -> bool:
    """Return whether a number is an index into a shape, or an argument called axis or axes."""
    parent = slot.parent
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.value, ast.Attribute | ast.Name) and "shape" in ast.unparse(parent.value)
    return isinstance(parent, ast.keyword) and parent.arg in ("axis", "axes")


def _comparisons(node: ast.Compare) -> Iterator[tuple[str, ast.expr]]:
    for i, op in enumerate(node.ops):
        ops = [*node.ops[:i], COMPARISONS[type(op)](), *node.ops[i + 1 :]]
        yield "comparison", ast.Compare(node.left, ops, node.comparators)


def _axes(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the call without its axis arguments, so that the defaults apply."""
    remaining = [k for k in call.keywords if k.arg not in ("axis", "axes", "keepdims")]
    if len(remaining) < len(call.keywords):
        shorter = copy.copy(call)
        shorter.keywords = remaining
        yield "axis", shorter
