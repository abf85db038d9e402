"""From a module to a program of ops that have rules."""

from __future__ import annotations

import contextlib
import functools
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from gradserve_client.errors import InputError
from gradserve_client.importing import Blocked, ImportRefused, Note, Obstacles
from gradserve_client.torch.rules import RULES
from gradserve_client.torch.stop_gradients import mark

#: every `apply` of an autograd.Function asks it whether the class has a context of its own
_FUNCTIONS: Final = torch.autograd.function
#: the first version whose programs the rules are of
_OLDEST: Final = (2, 13)
_OWN_BACKWARD: Final = Blocked(
    "it has a backward of its own, which torch.export forgets", "write its forward with ops whose gradients are right"
)
_HOOK: Final = Blocked("it is a hook that changes gradients, which torch.export forgets", "remove it")
_BY_DATA: Final = Blocked(
    "what is computed depends on the values of the data",
    "choose with torch.where, or pass the choice as an argument that is no tensor",
)
#: of messages of torch.export, what says that the program looks at data
_LOOKS: Final = ("data-dependent", "GuardOnDataDependent", "unbacked", "Dynamic control flow")


def exported(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], obstacles: Obstacles, notes: list[Note]
) -> Any:
    """The program that a module is for these arguments, of the ops that have rules as far as it can be decomposed.

    What is stopped in it is marked. Raises InputError for what torch.export cannot trace, and ImportRefused where that
    is since it looks at data.
    """
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < _OLDEST:
        raise InputError(
            f"the importer is made for PyTorch {'.'.join(map(str, _OLDEST))} and newer: {torch.__version__}"
        )
    with warnings.catch_warnings(record=True) as warned, torch.enable_grad(), _watched(module, obstacles):
        warnings.simplefilter("always")
        try:
            program = torch.export.export(module, *_apart(args, kwargs), strict=False)
        except Exception as error:
            raise _untraced(type(module).__name__, error, obstacles) from error
        mark(program, obstacles)
        decomposed = program.run_decompositions(_table())
    notes += _leaked(warned)
    return decomposed


def _apart(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Arguments of which no two share memory, which torch.export would take for one input."""

    def copied(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    return pytree.tree_map(copied, (tuple(args), dict(kwargs)))


def _table() -> Any:
    """PyTorch's decompositions, without those of ops that have rules."""
    return _kept().copy()


@functools.cache
def _kept() -> Any:
    table = torch.export.default_decompositions()
    for name in RULES:
        packet, _, overload = name.removeprefix("aten.").partition(".")
        op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        if op is not None and op in table:
            table.pop(op)
    return table


@contextlib.contextmanager
def _watched(module: torch.nn.Module, obstacles: Obstacles) -> Iterator[None]:
    """Notes what would have a gradient that no op says, while a module is traced."""
    for path, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            obstacles.meet("hook", repr(path) if path else "the module", _HOOK)
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks:
            obstacles.meet("hook", repr(name), _HOOK)
    asked, register = _FUNCTIONS._is_setup_context_defined, torch.Tensor.register_hook

    def applied(setup: Any) -> Any:
        # of the class there is nothing but the frame: `apply` may have been taken from it before
        name = sys._getframe(1).f_locals["cls"].__name__
        obstacles.meet(f"autograd.Function {name}", _line(), _OWN_BACKWARD)
        return asked(setup)

    def registered(tensor: Any, hook: Any) -> Any:
        obstacles.meet("hook", _line(), _HOOK)
        return register(tensor, hook)

    _FUNCTIONS._is_setup_context_defined = applied
    torch.Tensor.register_hook = registered
    try:
        yield
    finally:
        _FUNCTIONS._is_setup_context_defined, torch.Tensor.register_hook = asked, register


def _line() -> str:
    """The line of the model that is being traced."""
    frames = [each for each in traceback.extract_stack() if "site-packages" not in each.filename]
    own = [each for each in frames if each.filename != __file__ and "/contextlib.py" not in each.filename]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "a line that is unknown"


def _untraced(name: str, error: Exception, obstacles: Obstacles) -> Exception:
    """What torch.export could not trace, as one of our own errors."""
    told = f"{type(error).__name__}: {error}"
    if any(each in told for each in _LOOKS):
        lines = [each for each in traceback.extract_tb(error.__traceback__) if "site-packages" not in each.filename]
        own = [each for each in lines if each.filename != __file__]
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "a line that torch.export does not tell"
        obstacles.meet("if", place, _BY_DATA)
        return ImportRefused(f"the module {name}", [*obstacles])
    return InputError(f"torch.export cannot trace the module {name}: {told.partition(chr(10))[0]}")


def _leaked(warned: Sequence[warnings.WarningMessage]) -> Iterator[Note]:
    """A note for what a run assigns to the module, which is no part of the graph; the LSTM's own list of weights is."""
    for each in warned:
        told = str(each.message)
        if "assigned during export" in told and "_flat_weights" not in told:
            yield Note("model", "attribute", 1, told.partition(". ")[0])
