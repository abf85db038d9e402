"""The Dockerfile reader of `make container-check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.deploy.images import SKIP_REASON, reader

TEXT = """
# a comment
ARG RELEASE=bookworm
FROM debian:${RELEASE}-slim AS base
ENV A=1 \\
    B="two words"
FROM base AS unused
FROM base AS tool
RUN --mount=type=cache,target=/c --network=none \\
    # in between
    make one \\
 && make two
FROM base AS last
COPY --from=tool /x /y
CMD ["run", "it"]
"""


@pytest.fixture
def stages(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "Dockerfile"
    path.write_text(TEXT, encoding="utf-8")
    result: dict[str, Any] = reader().read(path)
    assert path.read_text(encoding="utf-8") == TEXT
    return result


def test_stages_have_names_and_bases(stages: dict[str, Any]) -> None:
    bases = [(stage.name, stage.base) for stage in stages.values()]
    assert bases == [("base", "debian:bookworm-slim"), ("unused", "base"), ("tool", "base"), ("last", "base")]


def test_flags_are_separated_from_the_command(stages: dict[str, Any]) -> None:
    (run,) = stages["tool"].of("RUN")
    assert run.flags == ("mount=type=cache,target=/c", "network=none")
    assert run.value.split() == ["make", "one", "&&", "make", "two"]
    assert run.flag("network") == "none"
    assert run.flag("chmod") is None


def test_words_are_split_as_in_a_shell(stages: dict[str, Any]) -> None:
    assert stages["base"].of("ENV")[0].words == ["A=1", "B=two words"]
    assert stages["last"].of("CMD")[0].command == ["run", "it"]


def test_target_needs_its_base_and_its_copied_stages(stages: dict[str, Any]) -> None:
    assert [stage.name for stage in reader().needed(stages, "last")] == ["base", "tool", "last"]


def test_variables_are_replaced(stages: dict[str, Any]) -> None:
    assert stages
    assert reader().substitute("${A}-$B/x", {"A": "1", "B": "2"}) == "1-2/x"
    with pytest.raises(KeyError, match="C"):
        reader().substitute("$C", {})


def test_configuration_is_collected(stages: dict[str, Any], tmp_path: Path) -> None:
    configuration = pytest.importorskip("deploy.check.configuration", reason=SKIP_REASON)
    image = pytest.importorskip("deploy.check.image", reason=SKIP_REASON).Image(tmp_path, environment={"PATH": "/bin"})
    make = reader().Instruction
    for name, value in [("ENV", 'PATH=/x:$PATH V="${N}"'), ("USER", "7:8"), ("WORKDIR", "/src"), ("CMD", '["a"]')]:
        configuration.configure(image, make(name, (), value), {"N": "5"})
    assert stages
    assert image.environment == {"PATH": "/x:/bin", "V": "5"}
    assert (image.user, image.folder, image.command) == ("7:8", "/src", ["a"])
    assert (tmp_path / "src").is_dir()
    with pytest.raises(KeyError, match="SHELL"):
        configuration.configure(image, make("SHELL", (), '["x"]'), {})
