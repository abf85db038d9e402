"""ONNX's own node tests, imported and computed by a server: `python -m clients.python.tests.onnx_nodes`.

Each test is a model of a node, or of the nodes that define its op in ONNX, with inputs and expected outputs. Results
must agree within the test's own tolerances. An input that defines a shape is named in `constants`, as its refusal asks.
The table is docs/reference/onnx.md, which is written, or compared if --check is given.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

import gradserve_client as gs
from gradserve_client.importing import Imported, ImportRefused
from gradserve_client.onnx import import_model

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "onnx.md"
ANNOUNCEMENT = "gradserve listening on "
#: dtypes with intermediate rounding in the tests
HALVES = (np.float16, np.float32)
NARROW = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
#: maximum number of imports that name further constants
TRIES = 8
HEAD = """<!-- Written by `python -m clients.python.tests.onnx_nodes`. Edit the rules, not this page. -->

# What is imported of ONNX

[The importer](../guide/importing.md) is held to the node tests that ONNX ships, of version {version}, up to opset
{opset}: each is a model with inputs and what they give, and the graph has to give the same, in dtype, shape and
numbers, within the tolerances that the test states. What is `expanded` is of the nodes that ONNX defines an op by.

| tests | agree | differ | refused |
| --- | --- | --- | --- |
| {total} | {agree} | {differ} | {refused} |

Of those that agree, {constant} are graphs without data: all that the result depends on says a shape, and ONNX's
reference evaluator folds it. An input that says a shape is a constant of the graph, as the refusal asks for it.

The numbers of {rounded_count} tests are off by their own roundings in float16 or float32, by more than their tolerance:
there, what agrees within it is ONNX's reference evaluator in float64. They are {rounded}.
"""


@dataclass
class Outcomes:
    """The outcomes of the tests: by op, and refusals by reason."""

    by_op: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    constant: int = 0
    rounded: list[str] = field(default_factory=list)

    def count(self, op: str, outcome: str) -> None:
        """Count a test of an op."""
        self.by_op.setdefault(op, Counter())[outcome] += 1

    def total(self, outcome: str) -> int:
        """The number of tests with an outcome."""
        return sum(counts[outcome] for counts in self.by_op.values())


def op_of(case: Any) -> str:
    """The op that a test is for: the op of its only node, or else the one in its name."""
    nodes = case.model.graph.node
    expanded = "_expanded" in case.name
    if len(nodes) == 1 and not expanded:
        return f"{nodes[0].domain}.{nodes[0].op_type}".lstrip(".")
    stem = case.name.removeprefix("test_").partition("_expanded")[0]
    return f"{stem.split('_')[0]}, expanded" if expanded else "several"


def named_inputs(case: Any) -> dict[str, Any]:
    values = (as_array(value) if isinstance(value, onnx.TensorProto) else value for value in case.data_sets[0][0])
    return {each.name: value for each, value in zip(case.model.graph.input, values, strict=False)}


def imported(case: Any) -> Imported:
    """Import a test's model with the constants that refusals ask for. Raises ImportRefused if that does not help."""
    constants: set[str] = set()
    inputs = named_inputs(case)
    for _ in range(TRIES):
        try:
            return import_model(case.model, inputs, constants=constants)
        except ImportRefused as refused:
            reads = {name for obstacle in refused.obstacles for name in obstacle.reads}
            if reads <= constants:
                raise
            constants |= reads
    raise AssertionError(f"{case.name} asks for ever more constants")


def results_of(case: Any, model: Imported, client: gs.Client) -> dict[str, np.ndarray]:
    """The results of a server, by output."""
    inputs = {name: value for name, value in named_inputs(case).items() if name in model.inputs}
    answer = client.forward(model.graph, model.feeds(inputs), outputs=[*dict.fromkeys(model.outputs.values())])
    return {name: answer.values[node] for name, node in model.outputs.items()}


def differences(case: Any, results: Mapping[str, np.ndarray], expected: Sequence[Any]) -> Iterator[str]:
    """The differences of results from the expected ones."""
    for (name, one), reference in zip(results.items(), expected, strict=True):
        other = as_array(reference)
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            yield f"{name} is {one.dtype}{[*one.shape]} in place of {other.dtype}{[*other.shape]}"
        elif not np.allclose(one, other, rtol=case.rtol, atol=case.atol, equal_nan=True):
            error = np.abs(one.astype(np.float64) - other.astype(np.float64))
            yield f"{name} is off by up to {np.nanmax(error):.3g}"


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with float64 in place of narrower floats."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for attribute in (attribute for node in result.graph.node for attribute in node.attribute):
        if attribute.name == "to" and attribute.i in NARROW:
            attribute.i = onnx.TensorProto.DOUBLE
        elif attribute.HasField("t") and attribute.t.data_type in NARROW:
            array = onnx.numpy_helper.to_array(attribute.t).astype(np.float64)
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(array))
    return result


def wide(case: Any) -> list[Any] | None:
    """The outputs of ONNX's evaluator in float64, rounded to the expected dtypes; None if it cannot compute them.

    A test's own numbers were computed in its dtype, and include its rounding errors.
    """
    inputs = named_inputs(case)
    floats = {
        name: value.astype(np.float64) for name, value in inputs.items() if getattr(value, "dtype", None) in HALVES
    }
    if not floats:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact = ReferenceEvaluator(widened(case.model)).run(None, {**inputs, **floats})
    except (RuntimeError, TypeError, ValueError):
        return None
    expected = [as_array(each) for each in case.data_sets[0][1]]
    return [np.asarray(one).astype(other.dtype) for one, other in zip(exact, expected, strict=True)]


def as_array(tensor: Any) -> np.ndarray:
    """A tensor of a test, which is an array or a TensorProto."""
    return onnx.numpy_helper.to_array(tensor) if isinstance(tensor, onnx.TensorProto) else np.asarray(tensor)


def run(cases: Sequence[Any], client: gs.Client, outcomes: Outcomes) -> None:
    for case in cases:
        op = op_of(case)
        try:
            model = imported(case)
        except ImportRefused as refused:
            outcomes.count(op, "refused")
            for obstacle in {(each.op, each.reason) for each in refused.obstacles}:
                outcomes.reasons[obstacle] += 1
            continue
        problem = compare_results(case, model, client, outcomes)
        outcomes.count(op, "differ" if problem else "agree")
        if problem:
            outcomes.differing.append(f"{case.name}: {problem}")
        elif not any(node.op == "input" for node in model.graph.subgraph([*model.outputs.values()]).nodes.values()):
            outcomes.constant += 1


def compare_results(case: Any, model: Imported, client: gs.Client, outcomes: Outcomes) -> str:
    """The differences of a test's results, or an empty string if they agree."""
    try:
        results = results_of(case, model, client)
    except gs.GradserveError as error:
        return str(error)
    problem = "; ".join(differences(case, results, case.data_sets[0][1]))
    exact = wide(case) if problem else None
    if exact is None or [*differences(case, results, exact)]:
        return problem
    outcomes.rounded.append(case.name)
    return ""


def page(outcomes: Outcomes) -> str:
    """The page: the totals, a table of ops, and a table of reasons."""
    totals = {name: outcomes.total(name) for name in ("agree", "differ", "refused")}
    head = HEAD.format(
        version=".".join(onnx.__version__.split(".")[:2]),
        opset=onnx.defs.onnx_opset_version(),
        total=sum(totals.values()),
        constant=outcomes.constant,
        rounded_count=len(outcomes.rounded),
        rounded=", ".join(f"`{name}`" for name in sorted(outcomes.rounded)) or "none",
        **totals,
    )
    ops = ["| op | agree | refused |", "| --- | --- | --- |"]
    ops += [
        f"| {op} | {counts['agree']} | {counts['refused']} |"
        for op, counts in sorted(outcomes.by_op.items(), key=_fold)
    ]
    reasons = ["| op | tests | why |", "| --- | --- | --- |"]
    reasons += [
        f"| {op} | {count} | {_cell(reason)} |" for (op, reason), count in sorted(outcomes.reasons.items(), key=_fold)
    ]
    return "\n".join([head, "## By op", "", *ops, "", "## What is refused", "", _REFUSED, "", *reasons]) + "\n"


_REFUSED = "A test that is refused for several reasons is counted with each. `input` and `output` are the model's own."


def _fold(row: tuple[Any, Any]) -> tuple[str, ...]:
    key = row[0]
    return tuple(each.lower() for each in ((key,) if isinstance(key, str) else key))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


@contextmanager
def started() -> Iterator[str]:
    """Run a server, and yield its URL."""
    command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--state", "memory"]
    environment = {**os.environ, "GRADSERVE_LOG_LEVEL": "error"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().removeprefix(ANNOUNCEMENT).strip()
        finally:
            process.kill()


def main(arguments: Sequence[str]) -> int:
    """Run the tests, and write or compare the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the page, and write nothing")
    parser.add_argument("--only", nargs="*", default=[], help="tests whose names begin so; the page is left alone")
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [
            case for case in collect_testcases(None) if not options.only or case.name.startswith(tuple(options.only))
        ]
    outcomes = Outcomes()
    with started() as url, gs.Client(url) as client:
        run(cases, client, outcomes)
    for line in outcomes.differing:
        print("differs:", line)
    if options.only:
        for (op, reason), count in outcomes.reasons.items():
            print(f"{count} {op}: {reason}")
    print(", ".join(f"{outcomes.total(name)} {name}" for name in ("agree", "differ", "refused")))
    return _finish(outcomes, bool(options.only), options.check)


def _finish(outcomes: Outcomes, partly: bool, check: bool) -> int:
    if partly or outcomes.differing:
        return 1 if outcomes.differing else 0
    if check:
        current = PAGE.read_text(encoding="utf-8") == page(outcomes)
        print("the page is current" if current else "the page is not current")
        return 0 if current else 1
    PAGE.write_text(page(outcomes), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
