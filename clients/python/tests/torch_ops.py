"""The reference page of the PyTorch importer, from its rules: `python -m clients.python.tests.torch_ops`.

It lists the ops that PyTorch tags as core, and all others that have rules. The program writes docs/reference/torch.md,
or compares it if --check is given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from gradserve_client.torch.families.unsupported import UNSUPPORTED
from gradserve_client.torch.rules import RULES
from gradserve_client.torch.stop_gradients import STOP_NAME
from gradserve_client.torch.translator import name_of

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "torch.md"
HEAD = """<!-- Written by `python -m clients.python.tests.torch_ops`. Edit the rules, not this page. -->

# What is imported of PyTorch

[The importer](../guide/importing.md) has rules for ops of PyTorch {version}, by overload. What has none is decomposed
by PyTorch into what has; what is left then is refused. Each rule is compared with PyTorch, in values and gradients.

| ops | with a rule | refused | without either |
| --- | --- | --- | --- |
| {core} that PyTorch tags as core | {said} | {refused} | {left} |
| others | {more} | {more_refused} | |

## Core ops with a rule

{said_ops}

## Core ops that are refused

{refused_ops}

## Others with a rule

They are not decomposed: since one op of ours is the same, or since what PyTorch makes of them has another gradient
somewhere, as of `xlogy` at 0. `detach` and `no_grad` are marked before anything is decomposed, as
`{stop}`, and become `stop_gradient`.

{more_ops}

## Others that are refused

{more_refused_ops}
"""


def core_ops() -> list[str]:
    """The overloads that PyTorch tags as core, except variants that write into an argument."""
    names = []
    for full in torch._C._dispatch_get_all_op_names():
        space, _, name = full.partition("::")
        packet, _, overload = name.partition(".")
        if space == "aten":
            op = getattr(getattr(torch.ops.aten, packet), overload or "default")
            if torch.Tag.core in op.tags and not overload.endswith("out"):
                names.append(name_of(op))
    return sorted(names)


def left() -> list[str]:
    """Core ops that have neither a rule nor a refusal."""
    return [op for op in core_ops() if op not in {*RULES} and op not in UNSUPPORTED]


def page() -> str:
    """The page, as Markdown."""
    core = core_ops()
    supported, refused = [op for op in core if op in {*RULES}], [op for op in core if op in UNSUPPORTED]
    more = [op for op in RULES if op not in core and op != STOP_NAME]
    more_refused = sorted(op for op in UNSUPPORTED if op not in core)
    return HEAD.format(
        version=".".join(torch.__version__.split(".")[:2]),
        core=len(core),
        said=len(supported),
        refused=len(refused),
        left=len(left()),
        more=len(more),
        more_refused=len(more_refused),
        said_ops=_listed(supported),
        refused_ops="\n".join(_reasons(refused)),
        more_ops=_listed(more),
        more_refused_ops="\n".join(_reasons(more_refused)),
        stop=STOP_NAME,
    )


def _listed(ops: Sequence[str]) -> str:
    """List ops in lines of limited length."""
    lines, line = [], ""
    for word in [f"`{op}`" + ("," if i < len(ops) - 1 else "") for i, op in enumerate(ops)]:
        if len(line) + len(word) > 118:
            lines.append(line)
            line = ""
        line += f" {word}" if line else word
    return "\n".join([*lines, line])


def _reasons(ops: Sequence[str]) -> Iterator[str]:
    """One row for each reason."""
    yield "| why | instead | ops |"
    yield "| --- | --- | --- |"
    for reason in dict.fromkeys(UNSUPPORTED[op] for op in ops):
        yield f"| {reason[0]} | {reason[1]} | {', '.join(f'`{op}`' for op in ops if UNSUPPORTED[op] == reason)} |"


def main(arguments: Sequence[str]) -> int:
    """Write or compare the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the page, and write nothing")
    options = parser.parse_args(arguments)
    print(f"{len(core_ops())} core ops, {len(left())} without a rule or a refusal {left() or ''}".rstrip())
    if options.check:
        current = PAGE.read_text(encoding="utf-8") == page()
        print("the page is current" if current else "the page is not current")
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
