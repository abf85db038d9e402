"""Put a mutant into the modules that are loaded: nothing is written, and nothing is imported again.

A function keeps its identity and gets other code, so that all who imported it, and all tables that hold it, see the
mistake. What a class or a module assigns is assigned again. There is no way back: do this in a process of its own.
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
    """A mistake of the runner's own: what a module raises when it is loaded with a mutant may be anything else."""


class FunctionKey(NamedTuple):
    """Key of a function: what tells those of a program apart, two on one line as well."""

    file: str
    name: str
    places: int


def key_of(code: CodeType) -> FunctionKey:
    """The key of the function that has this code."""
    return FunctionKey(code.co_filename, code.co_qualname, hash(tuple(code.co_positions())))


def functions(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions in a module and its classes, in the order of its text; not what is inside them."""
    if code.co_flags & CO_OPTIMIZED:
        yield code
        return
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from functions(constant)


def changed(mutant: Mutant) -> dict[FunctionKey, CodeType]:
    """The function that the mutant changes, and the code that it gets.

    None for what is outside functions, and where two functions that were alike and shared one code are now two:
    which is which cannot be told.
    """
    before = list(functions(compile(mutant.tree, str(mutant.path), "exec")))
    after = list(functions(mutant.code()))
    if len(before) != len(after):
        return {}
    return {key_of(old): new for old, new in zip(before, after, strict=True) if old != new}


Live = dict[FunctionKey, list[FunctionType]]


def alive(paths: Iterable[Path]) -> Live:
    """All functions there are that were loaded from these files."""
    names, found = {str(path) for path in paths}, defaultdict(list)
    gc.unfreeze()  # what was left out of collections is left out of this list as well
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename in names:
            found[key_of(thing.__code__)].append(thing)
    return dict(found)


def apply(mutant: Mutant, module: ModuleType, live: Live) -> None:
    """Make `module`, which was loaded from the mutant's file, the mutant. Raises NotApplied where that fails."""
    swaps = [(f, code) for key, code in changed(mutant).items() for f in live.get(key, ())]
    for function, code in swaps:
        function.__code__ = code
    if not swaps and not _assign(mutant, module):
        raise NotApplied(f"cannot apply {mutant}")


def _assign(mutant: Mutant, module: ModuleType) -> int:
    """Assign anew what the mutated statement assigns, and the defaults of functions; how many names there were."""
    scratch = ModuleType(module.__name__)
    sys.modules[module.__name__], kept = scratch, module  # for decorators that look their module up
    try:
        exec(mutant.code(), vars(scratch))  # noqa: S102 - our own source
    finally:
        sys.modules[module.__name__] = kept
    old, new = _inner(module, mutant.slot.scope), _inner(scratch, mutant.slot.scope)
    if isinstance(mutant.slot.parent, ast.arguments) and isinstance(old, FunctionType):
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
        return 1
    names = mutant.slot.targets or ()
    for name in (*names, *(() if mutant.slot.scope else _made_of(mutant.tree, names, vars(new)))):
        _rebind(old, name, vars(new)[name])
    return len(names)


def _made_of(tree: ast.Module, names: Iterable[str], values: Mapping[str, Any]) -> list[str]:
    """Further numbers of a module, and tuples of such, that are made of those of these names, or of one another."""
    known, found = set(names), list[str]()
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            made = [name for name in assigned(statement) if name not in known]
            read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            if read & known and all(isinstance(values[name], int | float | tuple) for name in made):
                known.update(made)
                found += made
    return found


def _inner(owner: Any, scope: tuple[str, ...]) -> Any:
    for name in scope:
        owner = vars(owner)[name]
    return owner


def _rebind(owner: Any, name: str, value: object) -> None:
    """Where a module assigns it: in all modules that imported it by this name."""
    old = vars(owner)[name]
    if _become(old, value):
        return
    importers = list(sys.modules.values()) if isinstance(owner, ModuleType) else []
    for place in (owner, *(m for m in importers if vars(m).get(name) is old)):
        setattr(place, name, value)


def _become(old: object, new: object) -> bool:
    """Change the declaration of an attribute, or several, in place: other ops may share it."""
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
