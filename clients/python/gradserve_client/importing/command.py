"""`python -m gradserve_client import`: a file becomes a model that a server keeps, with its weights at home."""

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

#: the module that reads files whose names end so, as what imports it needs an extra
IMPORTERS: Final = {".onnx": "gradserve_client.onnx"}
_DESCRIPTION: Final = "Have a server keep the model of a file: its graph, its weights, and its names."


def main(arguments: Sequence[str], out: TextIO | None = None) -> int:
    """What the command does: 0 where the model is kept, or could be in a dry run; 1 with a sentence where not."""
    stated = _parser().parse_args(arguments)
    out = out or sys.stdout
    try:
        imported = _imported(stated)
    except ImportRefused as refused:
        if stated.dry_run:
            _write(_table(refused.tally, refused), out)
        _write([str(refused)], sys.stderr)
        return 1
    except InputError as error:
        _write([str(error)], sys.stderr)
        return 1
    if stated.dry_run:
        _write([*_table(imported.tally), "", repr(imported), *(f"note: {note}" for note in imported.notes)], out)
        return 0
    return _kept(imported, stated, out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradserve_client", description=_DESCRIPTION)
    parsers = parser.add_subparsers(required=True)
    command = parsers.add_parser("import", help=_DESCRIPTION, description=_DESCRIPTION)
    command.add_argument("file", type=Path, help=f"the model: {', '.join(IMPORTERS)}")
    command.add_argument(
        "--name", help="what the model is called, and what its weights begin with; as the file, unless stated"
    )
    command.add_argument("--server", default=os.environ.get(URL_VARIABLE), help=f"its URL, or {URL_VARIABLE}")
    command.add_argument("--inputs", type=Path, help="example inputs by name, an .npz file; else random ones are made")
    command.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=2x3",
        help="the shape of an input that the file leaves open",
    )
    command.add_argument("--constant", action="append", default=[], metavar="NAME", help="an input that says a shape")
    command.add_argument("--max-steps", type=int, help="how often loops run at most that the file does not bound")
    for limit in fields(ImportLimits):
        command.add_argument(
            f"--limit-{limit.name}", type=int, default=limit.default, help=f"the most {limit.name} an import may use"
        )
    command.add_argument("--dry-run", action="store_true", help="print the table of ops, and ask no server")
    return parser


def _imported(stated: argparse.Namespace) -> Imported:
    suffix = stated.file.suffix.lower()
    if suffix not in IMPORTERS:
        raise InputError(
            f"{stated.file.name} ends in {suffix or 'nothing'}, and what is read ends in {', '.join(IMPORTERS)}"
        )
    try:
        importer = importlib.import_module(IMPORTERS[suffix])
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed: pip install 'gradserve-client[{suffix[1:]}]'") from error
    limits = ImportLimits(stated.limit_nodes, stated.limit_steps, stated.limit_bytes)
    options = {"constants": stated.constant, "max_steps": stated.max_steps, "limits": limits}
    imported: Imported = importer.import_file(stated.file, _examples(stated.inputs), _shapes(stated.shape), **options)
    return imported


def _examples(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with np.load(path, allow_pickle=False) as data:
            return dict(data.items())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} holds no example inputs: {error}") from error


def _shapes(stated: Iterable[str]) -> dict[str, list[int]]:
    """Shapes by name, of NAME=2x3; NAME= is a number by itself."""
    found = {}
    for each in stated:
        name, equals, shape = each.rpartition("=")
        try:
            found[name] = [int(extent) for extent in shape.split("x") if shape]
        except ValueError:
            equals = ""
        if not equals or not name:
            raise InputError(f"{each!r} is no shape of an input: it is stated as NAME=2x3")
    return found


def _table(tally: Tally | None, refused: ImportRefused | None = None) -> list[str]:
    """A line an op: how often it occurs, by how many nodes it is said, or that it is not."""
    blocked = {obstacle.op for obstacle in refused.obstacles} if refused is not None else set()
    rows = [("op", "times", "nodes each")]
    for op, count in sorted((tally or Tally()).occurrences.items()):
        least, most = (tally or Tally()).nodes_of(op)
        said = str(least) if least == most else f"{least} to {most}"
        rows.append((op, str(count), "refused" if op in blocked else said))
    wide = [max(len(row[i]) for row in rows) for i in range(3)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in rows]


def _kept(imported: Imported, stated: argparse.Namespace, out: TextIO) -> int:
    if not stated.server:
        _write([f"which server keeps it is said by --server or {URL_VARIABLE}"], sys.stderr)
        return 1
    name = stated.name or stated.file.stem
    try:
        names = imported.tensor_names(name)
        with Client(stated.server) as client:
            model = imported.to_model(client, name, f"{name}, imported from {stated.file.name}")
    except GradserveError as error:
        _write([str(error)], sys.stderr)
        return 1
    _write([f"model {model.name}", f"graph {model.graph_id}"], out)
    _write([f"{len(names)} tensors", *(f"  {each}" for each in names.values())], out)
    _write((f"{kind} {leaf!r}: node {node.id}" for kind, leaf, node in _leaves(imported)), out)
    _write((f"note: {note}" for note in imported.notes), out)
    return 0


def _leaves(imported: Imported) -> Iterable[tuple[str, str, Any]]:
    """What a call names: inputs, parameters and outputs."""
    for kind, nodes in (("input", imported.inputs), ("parameter", imported.parameters), ("output", imported.outputs)):
        for name, node in nodes.items():
            yield kind, name, node


def _write(lines: Iterable[str], out: TextIO) -> None:
    out.writelines(f"{line}\n" for line in lines)
