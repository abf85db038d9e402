"""The reference page of the JAX importer, from its rules: `python -m clients.python.tests.jax_primitives`.

Writes docs/reference/jax.md, or compares it if --check is given.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import jax

from gradserve_client.jax.families.calls import OWN
from gradserve_client.jax.families.linear_algebra import NAMED
from gradserve_client.jax.families.unsupported import UNSUPPORTED
from gradserve_client.jax.rules import RULES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "jax.md"
HEAD = """<!-- Written by `python -m clients.python.tests.jax_primitives`. Edit the rules, not this page. -->

# What is imported of JAX

[The importer](../guide/importing.md#jax-functions) goes over the jaxpr of a function. Each primitive of JAX
{version} is said by a rule, or refused with a reason; {said} are said and {refused} are refused. Whatever else is met
is refused with its name. Each rule is held to JAX in value and gradient, within 10⁻⁹ in float64, by
`make test-importers`.

What depends on constants alone is computed beforehand, unless it draws, calls back or speaks of devices; what no
result needs is left out. Some of JAX's own functions are known by their names, and said by one op whose gradient is
what their rule says: {own}.
Those of matrices are tried on numbers first, since `vmap` may have put axes elsewhere.

## Said

| primitive | by |
| --- | --- |
"""


def rule_summary(primitive: str) -> str:
    """The first paragraph of a rule's docstring."""
    rule = RULES.find(primitive)
    assert rule is not None, "it is in the table"
    documentation = inspect.getdoc(rule.translate) or ""
    sentence = " ".join(documentation.partition("\n\n")[0].split())
    assert sentence, f"the rule of {primitive} does not say what it does"
    return sentence.replace("|", "\\|")


def page() -> str:
    """The page, as Markdown."""
    names = sorted({*OWN, *NAMED}, key=str.casefold)
    own = ", ".join(f"`{name}`" for name in names)
    version = ".".join(jax.__version__.split(".")[:2])
    lines = [HEAD.format(version=version, said=len(RULES), refused=len(UNSUPPORTED), own=own).rstrip("\n")]
    lines += [f"| `{primitive}` | {rule_summary(primitive)} |" for primitive in RULES]
    lines += ["", "## Refused", "", "| primitives | why | a way round |", "| --- | --- | --- |"]
    by_reason: dict[tuple[str, str], list[str]] = defaultdict(list)
    for primitive, refusal in UNSUPPORTED.items():
        by_reason[refusal].append(primitive)
    for (reason, way_round), primitives in by_reason.items():
        listed = ", ".join(f"`{primitive}`" for primitive in sorted(primitives))
        lines.append(f"| {listed} | {reason} | {way_round} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write or compare the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare the page, and write nothing")
    if parser.parse_args(arguments).check:
        current = PAGE.read_text(encoding="utf-8") == page()
        print("the page is current" if current else "the page is not current")
        return 0 if current else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
