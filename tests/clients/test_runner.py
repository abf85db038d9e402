"""The runner passes a program that answers right, and says of each way to be wrong which case it is and what came."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from clients.conformance import run
from clients.conformance.cases import Case, cases
from clients.conformance.faults import Fault, caught
from clients.conformance.languages import LANGUAGES, Language
from clients.conformance.verdicts import Servers, servers, verdicts

ROOT = Path(__file__).parents[2]
ENCODED = list(cases(["tensors"], "encode-float64-finite-base64"))
LIVE = [case for name in ("products-gradients", "layer-hessian", "int64", "random-gradients", "descent", "refused",
                          "catalogue", "receipt")
        for case in cases(["live"], f"live-{name}")]  # fmt: skip


def echo(fault: str = "") -> Language:
    return Language(ROOT, (sys.executable, "-m", "tests.clients.echo", fault), ())


@pytest.fixture(scope="module")
def around() -> Iterator[Servers]:
    with servers(live=False) as started:
        yield started


def faults_found(language: Language, chosen: list[Case], around: Servers) -> list[str | None]:
    return [verdict.fault for verdict in verdicts(language, chosen, around)]


@pytest.mark.slow
def test_a_right_answer_passes(around: Servers) -> None:
    assert faults_found(echo(), ENCODED, around) == [None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("a bit", "tensor.hex: wanted"),
        ("ends", "the program ended: there is nothing to say"),
        ("another id", "no result of this case"),
        ("no JSON", "a line is no JSON"),
        ("leaks", "the key gs_of_the_environment is in what the program wrote"),
    ],
)
def test_a_wrong_answer_is_told(around: Servers, fault: str, said: str) -> None:
    (found,) = faults_found(echo(fault), ENCODED, around)
    assert found is not None
    assert said in found


def test_a_program_that_cannot_be_started_is_told(around: Servers) -> None:
    (found,) = faults_found(Language(ROOT, ("./no-such-program",), ()), ENCODED, around)
    assert found is not None
    assert "no-such-program" in found


@pytest.mark.slow
def test_a_program_that_ends_is_started_again_a_few_times(around: Servers) -> None:
    found = faults_found(echo("ends"), ENCODED * 4, around)
    assert found[3] == "the program is not asked any more"
    assert found[2] != found[3]


@pytest.mark.smoke
@pytest.mark.slow
def test_all_cases_are_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, language in (("right", echo()), ("wrong", echo("a bit"))):
        monkeypatch.setitem(LANGUAGES, name, language)
    prefix = ["--kind", "tensors", "--case", "encode-float64-finite-base64"]
    assert run.main([*prefix, "--only", "right"]) == 0
    assert capsys.readouterr().out == "right: 1 cases, 0 failed\n"
    assert run.main([*prefix, "--only", "right", "--only", "wrong"]) == 1
    _, told, summary = capsys.readouterr().out.splitlines()
    assert told.startswith("wrong: encode-float64-finite-base64: tensor.hex: wanted")
    assert summary == "wrong: 1 cases, 1 failed"


def test_no_case_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "right", echo())
    assert run.main(["--only", "right", "--case", "no-such-case"]) == 1


def test_a_seeded_fault_is_caught(around: Servers, tmp_path: Path) -> None:
    language = small_client(tmp_path)
    assert faults_found(language, ENCODED, around) == [None]
    found = caught(language, Fault("another dtype", "main.py", '["dtype"]', '["dtype"][:-1]'), ENCODED, around)
    assert found is not None
    assert found.case == ENCODED[0]
    assert caught(language, Fault("nothing", "main.py", "import base64", "import base64 "), ENCODED, around) is None


def test_what_fails_without_a_fault_catches_none(around: Servers, tmp_path: Path) -> None:
    wrong = [ENCODED[0] | {"id": "wrong", "want": {"as": "file"}}]
    assert caught(small_client(tmp_path), Fault("any", "main.py", '["dtype"]', '["shape"]'), wrong, around) is None


def test_a_fault_that_fits_nowhere_is_told(around: Servers, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is 0 times"):
        caught(small_client(tmp_path), Fault("none", "main.py", "no such text", ""), ENCODED, around)


def small_client(folder: Path) -> Language:
    """A program of its own folder, that encodes."""
    (folder / "main.py").write_text(
        "import base64, json, sys\n"
        "for line in sys.stdin:\n"
        "    case = json.loads(line)\n"
        "    packed = base64.b64encode(bytes.fromhex(case['tensor']['hex'])).decode()\n"
        '    wire = {"dtype": case["tensor"]["dtype"], "shape": case["tensor"]["shape"], "data_b64": packed}\n'
        '    print(json.dumps({"id": case["id"], "wire": json.dumps(wire)}), flush=True)\n',
        encoding="utf-8",
    )
    return Language(folder, (sys.executable, "main.py"), ())


class Failing:
    """A real server that fails, asked without a client."""

    def expected_results(self, case: Case) -> dict[str, Any]:
        return {"results": [{"raised": {"type": "server", "status": 500}}]}

    def clear(self) -> None:
        pass


def test_a_real_server_that_fails_is_told(around: Servers) -> None:
    (found,) = faults_found(echo(), LIVE[:1], replace(around, plain=cast(Any, Failing())))
    assert found is not None
    assert "the server itself failed" in found


@pytest.mark.slow
@pytest.mark.parametrize("future", [False, True], ids=["today", "future"])
def test_a_real_server_says_what_is_wanted(future: bool) -> None:
    with servers(live=True, future=future) as around:
        found = faults_found(echo(), LIVE, around)
        assert found == [None] * len(LIVE)
        computed = [case for case in LIVE if "refused" not in case["id"] and "catalogue" not in case["id"]]
        assert None not in faults_found(echo("a bit"), computed, around)


def test_faults_of_every_client_are_stated() -> None:
    for language in LANGUAGES.values():
        stated = json.loads((language.folder / "faults.json").read_text(encoding="utf-8"))
        assert len(stated) >= 4
