"""The Dockerfile as stages of instructions."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser  # type: ignore[import-untyped]

_FLAG = re.compile(r"--(\S+)\s+")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its name in capitals, the flags before its value, and the value on one line."""

    name: str
    flags: tuple[str, ...]
    value: str

    @property
    def words(self) -> list[str]:
        """The value as a shell would split it."""
        return shlex.split(self.value)

    @property
    def command(self) -> list[str]:
        """The value's JSON list. Raises ValueError for a command in shell form."""
        return [str(word) for word in json.loads(self.value)]

    def flag(self, name: str) -> str | None:
        """The value of --name=value, None where it is not given."""
        return next((given.partition("=")[2] for given in self.flags if given.startswith(f"{name}=")), None)


@dataclass(frozen=True)
class Stage:
    """What stands between one FROM and the next; `base` is an image or an earlier stage."""

    name: str
    base: str
    instructions: list[Instruction] = field(default_factory=list)

    def of(self, name: str) -> list[Instruction]:
        """Its instructions of one name, in order."""
        return [instruction for instruction in self.instructions if instruction.name == name]

    @property
    def sources(self) -> list[str]:
        """The stages it copies from."""
        return [source for copy in self.of("COPY") if (source := copy.flag("from"))]


def substitute(text: str, values: Mapping[str, str]) -> str:
    """The text with $name and ${name} replaced. KeyError for a name that has no value."""
    return _VARIABLE.sub(lambda match: values[match[1] or match[2]], text)


def read(path: Path) -> dict[str, Stage]:
    """The stages by name, in the file's order. The file is not changed."""
    stages: dict[str, Stage] = {}
    arguments: dict[str, str] = {}  # those before the first FROM, which only FROM sees
    for instruction in _instructions(path):
        if instruction.name == "FROM":
            base, _, name = substitute(instruction.value, arguments).split()
            stages[name] = Stage(name, base)
        elif stages:
            list(stages.values())[-1].instructions.append(instruction)
        else:
            name, _, value = instruction.value.partition("=")
            arguments[name] = value
    return stages


def _instructions(path: Path) -> list[Instruction]:
    with path.open("rb") as file:
        parts = DockerfileParser(fileobj=file).structure
    return [_instruction(part["instruction"], part["value"]) for part in parts if part["instruction"] != "COMMENT"]


def _instruction(name: str, value: str) -> Instruction:
    flags = []
    while match := _FLAG.match(value):
        flags.append(match[1])
        value = value[match.end() :]
    return Instruction(name, tuple(flags), value)


def needed(stages: Mapping[str, Stage], target: str) -> list[Stage]:
    """The stages that a target is made of, itself included, in the order in which they can be built."""
    wanted = {target}
    for stage in reversed(list(stages.values())):
        if stage.name in wanted:
            wanted |= {stage.base, *stage.sources}
    return [stage for stage in stages.values() if stage.name in wanted]
