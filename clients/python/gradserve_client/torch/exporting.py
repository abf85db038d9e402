"""Export of a module to a program of ops that have rules."""

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

#: the module whose `_is_setup_context_defined` every `apply` of an autograd.Function calls
_AUTOGRAD_FUNCTION: Final = torch.autograd.function
#: the oldest version of PyTorch that the rules support
_OLDEST: Final = (2, 13)
_OWN_BACKWARD: Final = Blocked(
    "it has a custom backward, which torch.export drops", "write its forward with ops whose gradients are correct"
)
_HOOK: Final = Blocked("it is a hook that changes gradients, which torch.export drops", "remove it")
_BY_DATA: Final = Blocked(
    "the computation depends on the values of the data",
    "choose with torch.where, or pass the choice as an argument that is not a tensor",
)
#: substrings of torch.export's messages about control flow that depends on data
_DATA_DEPENDENT: Final = ("data-dependent", "GuardOnDataDependent", "unbacked", "Dynamic control flow")


def export(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], obstacles: Obstacles, notes: list[Note]
) -> Any:
    """Export a module for these arguments, and decompose the program into ops that have rules as far as possible.

    Stopped gradients are marked in it. Raises InputError if torch.export cannot trace the module, and ImportRefused if
    the reason is control flow that depends on data.
    """
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < _OLDEST:
        raise InputError(
            f"the importer requires PyTorch {'.'.join(map(str, _OLDEST))} or newer, not {torch.__version__}"
        )
    with warnings.catch_warnings(record=True) as caught, torch.enable_grad(), _watch_gradients(module, obstacles):
        warnings.simplefilter("always")
        try:
            program = torch.export.export(module, *_without_aliases(args, kwargs), strict=False)
        except Exception as error:
            raise _export_error(type(module).__name__, error, obstacles) from error
        # before decompositions, which drop `detach` and `no_grad`
        mark(program, obstacles)
        decomposed = program.run_decompositions(_decompositions())
    notes += _assignment_notes(caught)
    return decomposed


def _without_aliases(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Copy the arguments so that no two share memory, which torch.export would treat as one input."""

    def copy(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    return pytree.tree_map(copy, (tuple(args), dict(kwargs)))


def _decompositions() -> Any:
    """Return PyTorch's decompositions, except those of ops that have rules."""
    return _cached_decompositions().copy()


@functools.cache
def _cached_decompositions() -> Any:
    table = torch.export.default_decompositions()
    for name in RULES:
        packet, _, overload = name.removeprefix("aten.").partition(".")
        op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        if op is not None and op in table:
            table.pop(op)
    return table


@contextlib.contextmanager
def _watch_gradients(module: torch.nn.Module, obstacles: Obstacles) -> Iterator[None]:
    """Record hooks and custom backward functions, which torch.export drops, as obstacles while a module is traced.

    Hooks of the module exist before the trace. To detect hooks that `forward` adds, and calls of autograd.Function,
    PyTorch is patched during the trace.
    """
    for path, submodule in module.named_modules():
        if submodule._backward_hooks or submodule._backward_pre_hooks:
            obstacles.add("hook", repr(path) if path else "the module", _HOOK)
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks:
            obstacles.add("hook", repr(name), _HOOK)
    original_check, original_register = _AUTOGRAD_FUNCTION._is_setup_context_defined, torch.Tensor.register_hook

    def check(setup: Any) -> Any:
        # the class is only in the caller's frame; patching `apply` would miss references taken before
        name = sys._getframe(1).f_locals["cls"].__name__
        obstacles.add(f"autograd.Function {name}", _source_line(), _OWN_BACKWARD)
        return original_check(setup)

    def register(tensor: Any, hook: Any) -> Any:
        obstacles.add("hook", _source_line(), _HOOK)
        return original_register(tensor, hook)

    _AUTOGRAD_FUNCTION._is_setup_context_defined = check
    torch.Tensor.register_hook = register
    try:
        yield
    finally:
        _AUTOGRAD_FUNCTION._is_setup_context_defined, torch.Tensor.register_hook = original_check, original_register


def _source_line() -> str:
    """Return the source line of the model that is being traced."""
    frames = [frame for frame in traceback.extract_stack() if "site-packages" not in frame.filename]
    own = [frame for frame in frames if frame.filename != __file__ and "/contextlib.py" not in frame.filename]
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "an unknown line"


def _export_error(name: str, error: Exception, obstacles: Obstacles) -> Exception:
    """Convert an exception of torch.export to an error of the client."""
    message = f"{type(error).__name__}: {error}"
    if any(part in message for part in _DATA_DEPENDENT):
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
        own = [frame for frame in frames if frame.filename != __file__]
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "an unknown line"
        obstacles.add("if", place, _BY_DATA)
        return ImportRefused(f"the module {name}", [*obstacles])
    return InputError(f"torch.export cannot trace the module {name}: {message.partition(chr(10))[0]}")


def _assignment_notes(caught: Sequence[warnings.WarningMessage]) -> Iterator[Note]:
    """Yield a note for each attribute that a run assigns, which the graph lacks. The LSTM's own weights are exempt."""
    for warning in caught:
        message = str(warning.message)
        if "assigned during export" in message and "_flat_weights" not in message:
            yield Note("model", "attribute", 1, message.partition(". ")[0])
