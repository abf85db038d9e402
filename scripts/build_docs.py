"""Write the pages generated from the code: ops, calls, rooms, clients; with --check, report stale pages instead."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from engine import describe, registry
from engine.ir.spellings import Familiar, familiar_attributes, familiar_ops, familiar_systems
from scripts import (
    alert_rules,
    equal_eigenvalues_picture,
    gallery_page,
    haproxy_files,
    job_states,
    loop_picture,
    op_catalogue,
    python_page,
    rooms,
)
from scripts.calls_table import PAGE, page_of_calls
from scripts.write_openapi import build_document
from service.web.pages.openapi import SHIPPED

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTES = DOCS / "porting_notes.toml"
LOOPS = DOCS / "guide" / "loops.md"
OPENAPI = ROOT / "service" / "web" / "pages" / "generated" / SHIPPED
Row = Mapping[str, Any]

GENERATED = "<!-- Written by `make docs` from the op registry. Edit the op, not this page. -->"

OPS_HEAD = f"""{GENERATED}

# The ops

Every op that a graph may use, as `GET /v1/ops` lists them. In a signature, `b?` may be absent and `x...`
stands for one or more operands; `=` gives an attribute's default, `*` marks a required one. In the
formula of a gradient, `g` is the cotangent of the result `y`, and what was broadcast is summed back.
Spellings of other systems are in [porting.md](porting.md).
"""

PORTING_HEAD = f"""{GENERATED}

# Porting a graph from another system

The server accepts other systems' names of an op, in any case. Such a spelling only renames the op:
attributes and defaults are those of [the op](ops.md). If a convention of the system differs, the note
beside the spelling says what to write.

In every graph: a node that is used more than once gets the sum of its gradients; the server computes
only the gradients with respect to the nodes in `wrt`; the gradient of `relu` at 0 is 0, or 1 with
`at_zero` 1, as in some systems.
"""

#: sentence per system on how to run only a part of a program on a server
BRIDGED = {
    "pytorch": "You can use a recorded function as a PyTorch layer: see [bridges](guide/bridges.md#pytorch).",
    "jax": "JAX can transform a recorded function: see [bridges](guide/bridges.md#jax).",
    "numpy": "SciPy can minimise, fit and integrate recorded functions: see [bridges](guide/bridges.md#scipy).",
}

COMING_FROM_HEAD = """<!-- Written by `make docs` from engine/ir/familiar_names.toml. Edit that, not this page. -->

# Coming from PyTorch, JAX, NumPy, TensorFlow, ONNX

The tables list the names of [the ops](ops.md) in these systems, if they differ from the names here. You cannot use them
in a graph: for `swish`, the server responds with `unknown_op` and suggests `silu`, as the tables do. A formula in the
last column takes several nodes; the op is the last or the main one.

A name that is in no table is the same here except for underscores (`LogSoftmax` is `log_softmax`; case does not
matter), or has no counterpart. PyTorch includes `torch.nn`, `linalg` and `special`; JAX includes Flax and Optax;
TensorFlow includes Keras. Systems whose names the server accepts have [tables of their own](porting.md).

Write graphs with [a client](../clients/README.md): its methods have the names of the ops. Start with ten minutes of
[Python](guide/ten-minutes-python.md), [TypeScript](guide/ten-minutes-typescript.md), [Go](guide/ten-minutes-go.md),
[Rust](guide/ten-minutes-rust.md), [Java](guide/ten-minutes-java.md) or [C++](guide/ten-minutes-cpp.md). You can
[import](guide/importing.md) a PyTorch module or an ONNX model without changes. In Python, you can
[record](guide/recording.md) a function that uses operators or the Array API standard as a graph. A recorded function
has methods such as `grad` and `hessian`, which work like `jax.grad`.

## Same name, different behaviour

- `conv2d`, its relatives and the pooling ops: the channels are axis 1 and a kernel is [features, channels / groups, …],
  as in PyTorch and ONNX. TensorFlow and Flax have the channels last: use `transpose`. `padding` takes numbers, not
  `SAME`.
- `linear`: w is [in, out]. In PyTorch it is [out, in]: `transpose` it first.
- `gather` works as in PyTorch. TensorFlow's and ONNX's take slices: use `embedding` along axis 0, or `gather` with
  `indices`.
- `transpose` swaps the last two axes by default. In NumPy, JAX and TensorFlow it reverses all axes: give `axes`.
- `sum`, `mean`, `max` and `min` reduce one operand. ONNX's `Sum`, `Mean`, `Max` and `Min` take several: use `add`,
  `maximum` and `minimum`. PyTorch's `max` along an axis also returns indices: use `argmax`.
- `var` divides by n. PyTorch's divides by n − 1: set `ddof` to 1.
- `batch_norm` always takes the statistics of its operand. `layer_norm` takes `axes`, not their extents.
- `split` takes the extents of all parts. PyTorch's also takes a single extent. NumPy's, JAX's and TensorFlow's take a
  number of parts: use `chunk`.
- `pad` takes the padding before and after the first axis, then the next axis. PyTorch begins with the last axis; ONNX
  lists the padding before all axes first.
- `topk` uses axis 0 by default; the other systems use the last axis.
- `mod` has the sign of the divisor, like `%` in Python, NumPy and JAX. In ONNX this holds only for integers.
- `identity` returns its operand. In NumPy and JAX it is a matrix: use `one_hot` of `arange`.

## Precision of float32

[`precision`](wire.md#precision) in a request states how matrix products and convolutions read float32 on a GPU. The
default is `float32`, unless [the server](guide/limits-and-operations.md) is configured with a lower precision. The
other systems have these names and defaults:

| here | PyTorch | JAX | TensorFlow |
| --- | --- | --- | --- |
| `float32` | `highest`, `ieee` | `highest`, `F32_F32_F32` | TF32 disabled |
| `tf32x3` | | `TF32_TF32_F32_X3` | |
| `tf32` | `high`; convolutions by default | the default on GPUs; `TF32_TF32_F32` | the default on GPUs |
| `bfloat16` | `medium` | `BF16_BF16_F32` | |

ONNX and NumPy have no such setting. In PyTorch, these are values of `torch.set_float32_matmul_precision` and
`fp32_precision`; for convolutions, `torch.backends.cudnn.allow_tf32`. In JAX, they are values of a product's
`precision` and of `jax_default_matmul_precision`, and the names of `jax.lax.DotAlgorithmPreset`. TensorFlow has
`tf.config.experimental.enable_tensor_float_32_execution`.

## Loops and functions

A [function](guide/loops.md) sees only its parameters. If a body in JAX, PyTorch or ONNX reads a value from its
surroundings, pass that value as a const; consts come first. Trees become lists: each leaf is an operand and a result.

- `jax.lax.scan(f, init, xs)`: [`scan`](ops.md#scan) of the body (consts, carries, entries) → carries, stacks. `length`
  and `reverse` are the same; you don't need `unroll`.
- `jax.lax.fori_loop(a, b, f, x)`: `scan` with b − a steps, and `arange` as the sequence of step numbers.
- `jax.lax.while_loop(cond, body, x)`: [`while`](ops.md#while) with `max_steps`; it has a gradient.
- `jax.lax.map(f, xs, batch_size=n)`: [`map`](ops.md#map) with `at_once` n.
- `jax.lax.cond(p, f, g, *x)`: [`cond`](ops.md#cond). For `switch`, nest one in another.
- `jax.lax.custom_root`, and solvers of JAXopt and Optimistix: [`fixed_point`](ops.md#fixed_point), with its implicit
  gradient.
- `jax.custom_vjp`, `torch.autograd.Function`: [`call`](ops.md#call) with `derivative`, which receives operands, results
  and cotangents. If it needs other values, return them as additional results of the body.
- `jax.checkpoint`, `torch.utils.checkpoint`: `call` with `recompute`. Loops need no such setting.
- `jax.random`: [`random_*`](guide/random.md), with the same keys and the same bits.
- `x[mask]`, `nonzero`, `jnp.nonzero(mask, size=k)`, `jnp.compress`: [`compress` and `nonzero`](guide/masks.md), which
  require k.
- `x[i, j]`, `x.at[i, j].add`, `index_put`: [`index`, `index_add`, `index_set`](guide/masks.md); `lax.dynamic_slice`:
  [`slice_at`](ops.md#slice_at).
- Complex numbers: [`complex64`, `complex128`](guide/complex.md). Gradients are the same as PyTorch's, and the
  conjugates of JAX's.
- Transforms such as `fft` and `rfft`, with `n` or `s`: [`fft`, `rfft`](guide/spectra.md), with `sizes`. Without `axes`,
  `sizes` applies to the last axes. `torch.stft` swaps the last two axes and pads.
- Functions of `linalg`, such as `eigh`, `svd`, `qr`, `lu`, `pinv`, `lstsq` and `matrix_exp`: ops of these names, with
  [a defined result for equal eigenvalues](guide/decompositions.md).
- ONNX's `Scan`: `scan`. State variables are carries; the last `num_scan_inputs` operands are sequences, along axis 0.
- ONNX's `Loop`: `while`. The trip count is `max_steps`, the condition a function, and the iteration number a carry. If
  all iterations run, or there are scan outputs, use `scan`.
- ONNX's `If`: `cond`. A value that either branch reads is an operand of both.
"""

COMING_FROM_ATTRIBUTES = """## Attributes

If a graph uses an attribute that an op does not have, the server responds with `bad_attribute` and suggests the first
of these that the op has.
"""


def ops_page(rows: Iterable[Row]) -> str:
    """Return docs/ops.md: an index, then one section per op."""
    rows = list(rows)
    index = table(("op", "operands", "what it is"), (_index_row(row) for row in rows))
    return "\n".join([OPS_HEAD, index, *(section(row) for row in rows)])


def _index_row(row: Row) -> tuple[str, str, str]:
    return f"[`{row['name']}`](#{row['name']})", ", ".join(row["operands"]) or "–", row["summary"]


def section(row: Row) -> str:
    """Return the section of an op on the page of all ops."""
    return f"## {row['name']}\n\n{facts(row)}{definition(row['name'], 'drawings')}"


def definition(op: str, folder: str) -> str:
    """Return the picture of an op that is defined by several nodes, or nothing if it has none.

    `folder` is the folder of drawings, relative to the page.
    """
    picture = f"ops/{op}.svg"
    if not (DOCS / "drawings" / picture).is_file():
        return ""
    return f"\nIt is these nodes:\n\n![{op}, as it is defined]({folder}/{picture})\n"


def facts(row: Row) -> str:
    """Return what the registry states of an op: signature, documentation and table of attributes."""
    several = ["Several results, each read through `get_output`.", ""] if row["several_outputs"] else []
    return "\n".join(
        [
            f"`{signature(row)}`",
            "",
            row["doc"],
            "",
            *several,
            *attribute_table(row),
            f"- gradient: {row['gradient']}",
            f"- dtypes: {', '.join(row['dtypes'])}",
            *alias_line(row),
            f"- since opset {row['since']}",
            "",
        ]
    )


def signature(row: Row) -> str:
    """Return the op as a call: operands, then attributes with their defaults."""
    attributes = ", ".join(_parameter(attribute) for attribute in row["attributes"])
    parts = [part for part in (", ".join(row["operands"]), attributes) if part]
    return f"{row['name']}({'; '.join(parts)})"


def _parameter(attribute: Row) -> str:
    if attribute["required"]:
        return f"{attribute['name']}*"
    return f"{attribute['name']}={shown(attribute['default'])}" if "default" in attribute else attribute["name"]


def shown(default: Any) -> str:
    """Return a default as a request writes it."""
    return str(default).lower() if isinstance(default, bool) else str(default)


def attribute_table(row: Row) -> list[str]:
    """Return the table of an op's attributes."""
    if not row["attributes"]:
        return []
    lines = ((f"`{a['name']}`", a["type"], _default(a), _meaning(a, row["since"])) for a in row["attributes"])
    return [table(("attribute", "type", "default", "meaning"), lines)]


def _default(attribute: Row) -> str:
    return "required" if attribute["required"] else shown(attribute.get("default", "absent"))


def _meaning(attribute: Row, op_since: int) -> str:
    choices, since = ", ".join(attribute.get("choices", ())), attribute["since"]
    parts = (attribute["doc"], choices and f"one of {choices}", since > op_since and f"since opset {since}")
    return "; ".join(part for part in parts if part)


def alias_line(row: Row) -> list[str]:
    """Return the line of other systems' spellings, if there are any."""
    aliases = ", ".join(f"`{alias['name']}` ({alias['systems']})" for alias in row["aliases"])
    return [f"- also spelled: {aliases}"] if aliases else []


def porting_page(rows: Iterable[Row], systems: Mapping[str, Any]) -> str:
    """Return docs/porting.md: one section per system. Raises ValueError for a note on an unknown op."""
    rows = list(rows)
    _check_notes({row["name"] for row in rows}, systems)
    return "\n".join([PORTING_HEAD, *(part for key in systems for part in system_section(key, systems[key], rows))])


def _check_notes(ops: set[str], systems: Mapping[str, Any]) -> None:
    unknown = sorted(f"{key}.{name}" for key in systems for name in systems[key]["notes"] if name not in ops)
    if unknown:
        raise ValueError(f"{NOTES.name} has notes on ops that do not exist: {', '.join(unknown)}")


def system_section(key: str, system: Row, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the section of a system: its spellings, its conventions, and what it does around the ops."""
    yield f"## {system['title']}\n\n{system['language']}.\n"
    lines = (
        (
            ", ".join(f"`{name}`" for name in names) or "–",
            f"[`{op}`](ops.md#{op})",
            system["notes"].get(op, ""),
        )
        for op, names in spellings(key, rows)
        if names or op in system["notes"]
    )
    yield table((system["title"], "here", "what differs"), lines)
    yield from (f"- {line}" for line in system["around"])
    if system["around"]:
        yield ""


def spellings(system: str, rows: Iterable[Row]) -> Iterator[tuple[str, list[str]]]:
    """Yield each op with the system's names for it."""
    for row in rows:
        aliases = row["aliases"]
        yield row["name"], [a["name"] for a in aliases if system in a["systems"].replace(",", " ").split()]


def coming_from_page(familiar: Iterable[Familiar], systems: Mapping[str, str]) -> str:
    """Return docs/coming-from.md: one section per system, then the attributes."""
    familiar = sorted(familiar, key=lambda entry: entry.op)
    attributes = table(
        ("elsewhere", "here"),
        ((f"`{theirs}`", ", ".join(f"`{name}`" for name in ours)) for theirs, ours in familiar_attributes().items()),
    )
    sections = (part for key, title in systems.items() for part in familiar_section(key, title, familiar))
    return "\n".join([COMING_FROM_HEAD, *sections, COMING_FROM_ATTRIBUTES, attributes])


def familiar_section(key: str, title: str, familiar: Iterable[Familiar]) -> Iterator[str]:
    """Yield the section of a system: its names by op, those with the same note in one row."""
    yield f"## {title}\n"
    if key in BRIDGED:
        yield f"{BRIDGED[key]}\n"
    names: dict[tuple[str, str], list[str]] = {}
    for name, op, systems, note in familiar:
        if key in systems:
            names.setdefault((op, note), []).append(f"`{name}`")
    yield table(
        (title, "here", "what differs"),
        ((", ".join(listed), f"[`{op}`](ops.md#{op})", note) for (op, note), listed in names.items()),
    )


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table, followed by an empty line."""
    head = list(head)
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def pages() -> dict[Path, str]:
    """Return every generated page, by path."""
    rows = describe(registry())
    systems = tomllib.loads(NOTES.read_text(encoding="utf-8"))
    return {
        DOCS / "ops.md": ops_page(rows),
        DOCS / "porting.md": porting_page(rows, systems),
        op_catalogue.PAGE: op_catalogue.page(registry()),
        PAGE: page_of_calls(),
        OPENAPI: orjson.dumps(build_document()).decode() + "\n",
        python_page.PAGE: python_page.page_of_python(),
        DOCS / "coming-from.md": coming_from_page(familiar_ops(), familiar_systems()),
        gallery_page.GALLERY_PAGE: gallery_page.gallery_page(),
        gallery_page.EXAMPLES_PAGE: gallery_page.examples_page(),
        equal_eigenvalues_picture.PICTURE: equal_eigenvalues_picture.picture(),
        LOOPS: loop_picture.with_loops(LOOPS.read_text(encoding="utf-8")),
        **haproxy_files.pages(),
        **alert_rules.pages(),
        rooms.PAGE: job_states.with_states(rooms.page()),
    }


def stale(expected: Mapping[Path, str]) -> list[Path]:
    """Return the pages whose file is missing or differs."""
    return [path for path, text in expected.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]


def main() -> int:
    """Write stale pages, or with --check return 1 if there are any."""
    parser = argparse.ArgumentParser(description="Write the pages that come from the code: ops, calls, rooms, clients.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is not current")
    options = parser.parse_args()
    expected = pages()
    outdated = stale(expected)
    if options.check:
        names = ", ".join(path.name for path in outdated)
        print(f"not current: {names}; run `make docs`" if outdated else "docs are current")
        return bool(outdated)
    for path in outdated:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(expected[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
