"""`python -m gradserve_client import`: store the model of a file on a server, with its weights."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np

from gradserve_client.client import Client
from gradserve_client.errors import GradserveError, InputError
from gradserve_client.importing.budget import ImportLimits
from gradserve_client.importing.imported import Imported
from gradserve_client.importing.notes import Tally
from gradserve_client.importing.obstacles import ImportRefused
from gradserve_client.recording.default_client import URL_VARIABLE

#: the importer module for each file suffix, imported on demand because it requires an extra
IMPORTERS: Final = {".onnx": "gradserve_client.onnx"}
_DESCRIPTION: Final = "Store the model of a file on a server: its graph, its weights, and its names."


def main(arguments: Sequence[str], out: TextIO | None = None) -> int:
    """Run the command. Return 0 if the model was stored, or could be in a dry run; otherwise print why and return 1."""
    options = _parser().parse_args(arguments)
    out = out or sys.stdout
    try:
        imported = _import_file(options)
    except ImportRefused as refused:
        if options.dry_run:
            _write(_table(refused.tally, refused), out)
        _write([str(refused)], sys.stderr)
        return 1
    except InputError as error:
        _write([str(error)], sys.stderr)
        return 1
    if options.dry_run:
        _write([*_table(imported.tally), "", repr(imported), *(f"note: {note}" for note in imported.notes)], out)
        return 0
    return _store(imported, options, out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradserve_client", description=_DESCRIPTION)
    parsers = parser.add_subparsers(required=True)
    command = parsers.add_parser("import", help=_DESCRIPTION, description=_DESCRIPTION)
    command.add_argument("file", type=Path, help=f"the model: {', '.join(IMPORTERS)}")
    command.add_argument(
        "--name", help="name of the model, and prefix of its weights' names; default: the name of the file"
    )
    command.add_argument(
        "--server", default=os.environ.get(URL_VARIABLE), help=f"URL of the server; default: {URL_VARIABLE}"
    )
    command.add_argument("--inputs", type=Path, help=".npz file of example inputs by name; default: random inputs")
    command.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=2x3",
        help="shape of an input, if the file leaves it open",
    )
    command.add_argument(
        "--constant", action="append", default=[], metavar="NAME", help="input that determines a shape"
    )
    command.add_argument("--max-steps", type=int, help="maximum number of steps of loops that the file does not bound")
    for limit in fields(ImportLimits):
        command.add_argument(
            f"--limit-{limit.name}",
            type=int,
            default=limit.default,
            help=f"maximum number of {limit.name} of an import",
        )
    command.add_argument("--dry-run", action="store_true", help="print the table of ops without contacting a server")
    return parser


def _import_file(options: argparse.Namespace) -> Imported:
    suffix = options.file.suffix.lower()
    if suffix not in IMPORTERS:
        raise InputError(
            f"{options.file.name} has the suffix {suffix or 'none'}; supported suffixes: {', '.join(IMPORTERS)}"
        )
    try:
        importer = importlib.import_module(IMPORTERS[suffix])
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: pip install 'gradserve-client[{suffix[1:]}]'") from error
    limits = ImportLimits(options.limit_nodes, options.limit_steps, options.limit_bytes)
    import_options = {"constants": options.constant, "max_steps": options.max_steps, "limits": limits}
    imported: Imported = importer.import_file(
        options.file, _examples(options.inputs), _shapes(options.shape), **import_options
    )
    return imported


def _examples(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with np.load(path, allow_pickle=False) as data:
            return dict(data.items())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read example inputs from {path}: {error}") from error


def _shapes(arguments: Iterable[str]) -> dict[str, list[int]]:
    """Parse shapes of the form NAME=2x3; NAME= is a scalar."""
    shapes = {}
    for argument in arguments:
        name, equals, shape = argument.rpartition("=")
        try:
            shapes[name] = [int(extent) for extent in shape.split("x") if shape]
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(f"{argument!r} is not a valid input shape: pass NAME=2x3")
    return shapes


def _table(tally: Tally | None, refused: ImportRefused | None = None) -> list[str]:
    """Return a table of ops: the number of occurrences, and of nodes per occurrence, or "refused"."""
    blocked = {obstacle.op for obstacle in refused.obstacles} if refused is not None else set()
    rows = [("op", "times", "nodes each")]
    for op, count in sorted((tally or Tally()).occurrences.items()):
        fewest, most = (tally or Tally()).node_counts(op)
        node_count = str(fewest) if fewest == most else f"{fewest} to {most}"
        rows.append((op, str(count), "refused" if op in blocked else node_count))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _store(imported: Imported, options: argparse.Namespace, out: TextIO) -> int:
    if not options.server:
        _write([f"no server given: pass --server or set {URL_VARIABLE}"], sys.stderr)
        return 1
    name = options.name or options.file.stem
    try:
        names = imported.tensor_names(name)
        with Client(options.server) as client:
            model = imported.to_model(client, name, f"{name}, imported from {options.file.name}")
    except GradserveError as error:
        _write([str(error)], sys.stderr)
        return 1
    _write([f"model {model.name}", f"graph {model.graph_id}"], out)
    _write([f"{len(names)} tensors", *(f"  {each}" for each in names.values())], out)
    _write((f"{kind} {leaf!r}: node {node.id}" for kind, leaf, node in _leaves(imported)), out)
    _write((f"note: {note}" for note in imported.notes), out)
    return 0


def _leaves(imported: Imported) -> Iterable[tuple[str, str, Any]]:
    """Return kind, name and node of everything that calls refer to by name."""
    for kind, nodes in (("input", imported.inputs), ("parameter", imported.parameters), ("output", imported.outputs)):
        for name, node in nodes.items():
            yield kind, name, node


def _write(lines: Iterable[str], out: TextIO) -> None:
    out.writelines(f"{line}\n" for line in lines)
