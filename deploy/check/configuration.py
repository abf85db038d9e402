"""The instructions that change no file: each writes into an image's configuration."""

from __future__ import annotations

from deploy.check.dockerfile import Instruction, substitute
from deploy.check.image import Image


def configure(image: Image, instruction: Instruction, arguments: dict[str, str]) -> None:
    """Execute one of them; `arguments` are the stage's build arguments. Raises KeyError for one that is not known."""
    if instruction.name == "ARG":
        arguments |= _pairs([instruction.value])
    elif instruction.name == "ENV":
        values = image.environment | arguments
        image.environment |= {name: substitute(value, values) for name, value in _pairs(instruction.words).items()}
    else:
        _SIMPLE[instruction.name](image, instruction)


def _pairs(words: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _folder(image: Image, instruction: Instruction) -> None:
    image.folder = instruction.value
    image.path(".").mkdir(parents=True, exist_ok=True)


def _user(image: Image, instruction: Instruction) -> None:
    image.user = instruction.value


def _label(image: Image, instruction: Instruction) -> None:
    image.labels |= _pairs(instruction.words)


def _expose(image: Image, instruction: Instruction) -> None:
    image.ports += instruction.words


def _volume(image: Image, instruction: Instruction) -> None:
    image.volumes += instruction.words


def _health(image: Image, instruction: Instruction) -> None:
    image.health = Instruction("CMD", (), instruction.value.removeprefix("CMD")).command


def _entrypoint(image: Image, instruction: Instruction) -> None:
    image.entrypoint = instruction.command


def _command(image: Image, instruction: Instruction) -> None:
    image.command = instruction.command


_SIMPLE = {
    "CMD": _command,
    "ENTRYPOINT": _entrypoint,
    "EXPOSE": _expose,
    "HEALTHCHECK": _health,
    "LABEL": _label,
    "USER": _user,
    "VOLUME": _volume,
    "WORKDIR": _folder,
}
