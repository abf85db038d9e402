"""Recipes of generated clients: each is complete, pinned and in the table. `make test-generated` runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clients.generators.recipe import HERE, recipes
from clients.tools import lacking
from service.web.pages.openapi import DOCUMENT_NAMES

RECIPES = recipes()


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_uses_a_generator_document(name: str) -> None:
    recipe = RECIPES[name]
    assert recipe.document in DOCUMENT_NAMES
    assert "sdk" in recipe.document
    assert recipe.document in recipe.generate


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_is_in_the_table(name: str) -> None:
    assert f"[{RECIPES[name].title}]({name}/" in (HERE / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(HERE.glob("*/package.json")), ids=lambda path: path.parent.name)
def test_npm_packages_are_pinned_without_a_lock_file(path: Path) -> None:
    package = json.loads(path.read_text(encoding="utf-8"))
    versions = {**package.get("dependencies", {}), **package["devDependencies"]}
    assert all(re.fullmatch(r"[\d.]+", version) for version in versions.values())
    assert not path.with_name("package-lock.json").exists()


@pytest.mark.parametrize("path", sorted(HERE.glob("*/go.sum")), ids=lambda path: path.parent.name)
def test_go_tools_are_pinned(path: Path) -> None:
    tool = re.search(r"^tool (\S+)$", path.with_name("go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert tool
    assert f"go tool {tool[1].rpartition('/')[2]} " in RECIPES[path.parent.name].generate


def test_every_folder_is_a_recipe() -> None:
    folders = {path.name for path in HERE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(RECIPES)


def test_missing_tools_are_named() -> None:
    assert lacking(["sh", "no-such-command", "no-such-library.pc"]) == ["no-such-command", "no-such-library.pc"]
