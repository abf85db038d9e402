"""The glossary of CONTRIBUTING.md: its words are the ones in use, and those that they have replaced are not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGES, ROOT, files, name, parsed

ROWS = re.findall(
    r"^\| ([^|]+) \| \[(\w+)\]\(([\w/]+\.py)\) \| [^|]+ \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Glossary")[2],
    re.MULTILINE,
)
#: classes and files that stood for what the glossary has now: words that mean something else elsewhere
REPLACED = {
    "Bound",
    "Rebound",
    "Residence",
    "Tier",
    "Turn",
    "Cell",
    "Experience",
    "Line",
    "Front",
    "Behind",
    "Told",
    "Lifted",
    "Repeated",
    "Asked",
}
#: words that no name has any more, nor a part of one: of classes and functions, of variables and what is passed
REPLACED_WORDS = (
    "boss", "crew", "cuda_bound", "desk", "guest", "handout", "hopeless", "keeper", "lease", "lodge", "pace", "passage",
    "prison", "shelf", "shelve", "shelved", "slab", "spoilt", "staff", "staffed", "twin",
)  # fmt: skip
#: where a lease is one: of a place that several servers reach
LEASES = (
    "service/state/",
    "service/settings.py",
    "service/app.py",
    "service/cluster/",
    "tests/service/state/",
    "tests/service/cluster/",
)
#: words that mean one thing, and where names have them for it
ONE_MEANING = {
    "nest": ("engine/bodies/nest.py", "engine/planning/compiler.py"),
    "nested": ("engine/bodies/nest.py",),
    "phase": (
        "engine/cards/",
        "engine/executors/cuda_recipes.py",
        "engine/executors/kernels.py",
        "engine/microkernels/",
        "engine/planning/heaviest.py",
    ),
    "piece": (
        "engine/executors/sum_runs.py",
        "schemas/answer.py",
        "service/app.py",
        "service/calls/batch.py",
        "service/cluster/elsewhere.py",
        "service/ingress/configuration.py",
        "service/observe/exposition.py",
        "service/pool/",
        "service/transport/frames.py",
        "service/transport/sum_parts.py",
        "service/web/head.py",
        "service/wire/answers.py",
        "service/wire/media.py",
        "service/worker/sum_jobs.py",
        "service/worker/worker.py",
    ),
    "room": (),  # of folders, of which no name speaks
    "tile": (
        "engine/microkernels/",
        "engine/oplib/attention_gradients.py",
        "engine/oplib/attention_rows.py",
        "engine/oplib/score_tiles.py",
        "engine/ops/flip.py",  # the op of this name, as in NumPy
        "engine/ops/lu.py",  # NumPy's function
    ),
    "tiling": ("engine/oplib/attention_gradients.py", "engine/oplib/attention_rows.py", "engine/oplib/score_tiles.py"),
}


def test_there_is_a_glossary() -> None:
    assert len(ROWS) >= 40


@pytest.mark.parametrize(("defined", "path"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_term_is_where_the_glossary_says(defined: str, path: str) -> None:
    assert defined in definitions(path)


def definitions(path: str) -> set[str]:
    kinds = ast.ClassDef | ast.FunctionDef
    return {node.name for node in parsed(ROOT / path).body if isinstance(node, kinds)}


@pytest.mark.slow
def test_what_was_replaced_is_gone() -> None:
    found = {
        f"{name(path)}: {node.name}"
        for path in files("engine", "service")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and node.name.removeprefix("_") in REPLACED
    }
    stems = {name(path) for path in files("engine", "service") if path.stem.title() in REPLACED}
    assert not found | stems


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["engine", "service", "tests/service"])
@pytest.mark.parametrize("word", REPLACED_WORDS)
def test_no_name_has_a_word_that_was_replaced(word: str, folder: str) -> None:
    paths = [path for path in files(folder) if not (word == "lease" and name(path).startswith(LEASES))]
    assert not {f"{name(path)}: {found}" for path in paths for found in identifiers(path) if word in words(found)}


@pytest.mark.slow
@pytest.mark.parametrize("word", ONE_MEANING)
def test_a_word_stands_where_it_means_what_the_glossary_says(word: str) -> None:
    places = {name(path): identifiers(path) for path in files(*PACKAGES)}
    found = {place for place, names in places.items() if any(word in words(each) for each in names)}
    assert not {place for place in found if not place.startswith(ONE_MEANING[word])}
    assert not {place for place in ONE_MEANING[word] if not any(each.startswith(place) for each in found)}


def test_words_of_names_are_found() -> None:
    assert words("_AnswerSlabs") >= {"answer", "slab"}
    assert words("CUDA_LEASES") >= {"cuda", "lease"}
    assert words("lent_shelves") >= {"lent", "shelve", "shelf"}
    assert "cuda_bound" in words("CudaBound")
    assert words("HTTPPace2") >= {"http", "pace"}
    shown = ast.parse("def shelf(slab, *, twin=guest): self._crew = lodge.boss(desk=0)\nclass Prison: pass")
    assert {"shelf", "slab", "twin", "guest", "_crew", "lodge", "boss", "desk", "Prison"} <= {*named(shown)}


@cache
def identifiers(path: Path) -> frozenset[str]:
    """Every name that a file gives or uses, and its own."""
    return frozenset(named(parsed(path))) | {path.stem}


def named(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Name(id=found) | ast.Attribute(attr=found) | ast.arg(arg=found) | ast.alias(name=found):
                yield found
            case ast.ClassDef(name=found) | ast.FunctionDef(name=found) | ast.AsyncFunctionDef(name=found):
                yield found
            case ast.keyword(arg=str(found)):
                yield found


@cache
def words(identifier: str) -> frozenset[str]:
    """The words of a name in camel or snake case, of each two in a row, and what they may be the plural of."""
    parts = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]
    pairs = [f"{first}_{second}" for first, second in pairwise(parts)]
    singular = [part.removesuffix("s") for part in parts] + [re.sub("ves$", "f", part) for part in parts]
    return frozenset([*parts, *pairs, *singular])
