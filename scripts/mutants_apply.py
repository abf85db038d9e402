"""Application of a mutant to loaded modules, without writing files or importing anything again.

A function keeps its identity and gets new code, so that every importer and every table that holds it sees the mutation.
The assignments of classes and modules are repeated. A mutation cannot be undone, so apply it in a process of its own.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from engine.ir.attributes import Attr
from scripts.mutants_find import Mutant, assigned


class NotApplied(Exception):
    """A fault of the runner itself. A module that is loaded with a mutant may raise anything else."""


class FunctionKey(NamedTuple):
    """Key of a function, which distinguishes all functions of a program, even two on one line."""

    file: str
    name: str
    positions: int


def key_of(code: CodeType) -> FunctionKey:
    """Return the key of the function with this code."""
    return FunctionKey(code.co_filename, code.co_qualname, hash(tuple(code.co_positions())))


def functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions in a module and its classes, in textual order, without nested functions."""
    if code.co_flags & CO_OPTIMIZED:
        yield code
        return
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from functions(constant)


def changed(mutant: Mutant) -> dict[FunctionKey, CodeType]:
    """Return the function that the mutant changes, with its new code.

    Return nothing for code outside functions, and if two identical functions shared one code object that the mutant
    splits: they cannot be told apart.
    """
    before = list(functions(compile(mutant.tree, str(mutant.path), "exec")))
    after = list(functions(mutant.code()))
    if len(before) != len(after):
        return {}
    return {key_of(old): new for old, new in zip(before, after, strict=True) if old != new}


Live = dict[FunctionKey, list[FunctionType]]


def alive(paths: Iterable[Path]) -> Live:
    """Return all existing functions that were loaded from these files."""
    names, functions_by_key = {str(path) for path in paths}, defaultdict(list)
    gc.unfreeze()  # get_objects leaves out frozen objects
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename in names:
            functions_by_key[key_of(thing.__code__)].append(thing)
    return dict(functions_by_key)


def apply(mutant: Mutant, module: ModuleType, live: Live) -> None:
    """Turn `module`, which was loaded from the mutant's file, into the mutant. Raises NotApplied if that fails."""
    swaps = [(f, code) for key, code in changed(mutant).items() for f in live.get(key, ())]
    for function, code in swaps:
        function.__code__ = code
    if not swaps and not _assign(mutant, module):
        raise NotApplied(f"cannot apply {mutant}")


def _assign(mutant: Mutant, module: ModuleType) -> int:
    """Repeat the assignment of the mutated statement, or the defaults of a function, and return the number of names."""
    scratch = ModuleType(module.__name__)
    sys.modules[module.__name__], original = scratch, module  # for decorators that look their module up
    try:
        exec(mutant.code(), vars(scratch))  # noqa: S102 - our own source
    finally:
        sys.modules[module.__name__] = original
    old, new = _inner(module, mutant.slot.scope), _inner(scratch, mutant.slot.scope)
    if isinstance(mutant.slot.parent, ast.arguments) and isinstance(old, FunctionType):
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
        return 1
    names = mutant.slot.targets or ()
    for name in (*names, *(() if mutant.slot.scope else _derived_names(mutant.tree, names, vars(new)))):
        _rebind(old, name, vars(new)[name])
    return len(names)


def _derived_names(tree: ast.Module, names: Iterable[str], values: Mapping[str, Any]) -> list[str]:
    """Return further numbers of a module, and tuples of numbers, that are computed from those of these names."""
    known, derived = set(names), list[str]()
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            new = [name for name in assigned(statement) if name not in known]
            read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            if read & known and all(isinstance(values[name], int | float | tuple) for name in new):
                known.update(new)
                derived += new
    return derived


def _inner(owner: Any, scope: tuple[str, ...]) -> Any:
    for name in scope:
        owner = vars(owner)[name]
    return owner


def _rebind(owner: Any, name: str, value: object) -> None:
    """Set a name. If a module owns it, set it in all modules that imported it under this name."""
    old = vars(owner)[name]
    if _become(old, value):
        return
    importers = list(sys.modules.values()) if isinstance(owner, ModuleType) else []
    for target in (owner, *(m for m in importers if vars(m).get(name) is old)):
        setattr(target, name, value)


def _become(old: object, new: object) -> bool:
    """Change the declaration of an attribute, or of several, in place, since other ops may share it."""
    if isinstance(old, Attr):
        vars(old).update(vars(new))
        return True
    if isinstance(old, dict) and isinstance(new, dict) and all(isinstance(a, Attr) for a in old.values()):
        if old.keys() != new.keys():
            return False
        for key in old:
            _become(old[key], new[key])
        return bool(old)
    return False
