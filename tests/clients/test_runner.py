"""The runner passes a correct program, and reports the case and the answer for each kind of wrong answer."""

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
def backends() -> Iterator[Servers]:
    with servers(live=False) as started:
        yield started


def faults_found(language: Language, chosen: list[Case], backends: Servers) -> list[str | None]:
    return [verdict.fault for verdict in verdicts(language, chosen, backends)]


@pytest.mark.slow
def test_correct_answer_passes(backends: Servers) -> None:
    assert faults_found(echo(), ENCODED, backends) == [None]


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
def test_wrong_answer_is_reported(backends: Servers, fault: str, said: str) -> None:
    (reported,) = faults_found(echo(fault), ENCODED, backends)
    assert reported is not None
    assert said in reported


def test_program_that_cannot_start_is_reported(backends: Servers) -> None:
    (reported,) = faults_found(Language(ROOT, ("./no-such-program",), ()), ENCODED, backends)
    assert reported is not None
    assert "no-such-program" in reported


@pytest.mark.slow
def test_crashing_program_is_restarted_a_few_times(backends: Servers) -> None:
    reported = faults_found(echo("ends"), ENCODED * 4, backends)
    assert reported[3] == "the program is not asked any more"
    assert reported[2] != reported[3]


@pytest.mark.smoke
@pytest.mark.slow
def test_command_reports_failed_cases(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, language in (("right", echo()), ("wrong", echo("a bit"))):
        monkeypatch.setitem(LANGUAGES, name, language)
    prefix = ["--kind", "tensors", "--case", "encode-float64-finite-base64"]
    assert run.main([*prefix, "--only", "right"]) == 0
    assert capsys.readouterr().out == "right: 1 cases, 0 failed\n"
    assert run.main([*prefix, "--only", "right", "--only", "wrong"]) == 1
    _, failure, summary = capsys.readouterr().out.splitlines()
    assert failure.startswith("wrong: encode-float64-finite-base64: tensor.hex: wanted")
    assert summary == "wrong: 1 cases, 1 failed"


def test_no_matching_case_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, "right", echo())
    assert run.main(["--only", "right", "--case", "no-such-case"]) == 1


def test_seeded_fault_is_caught(backends: Servers, tmp_path: Path) -> None:
    language = small_client(tmp_path)
    assert faults_found(language, ENCODED, backends) == [None]
    detection = caught(language, Fault("another dtype", "main.py", '["dtype"]', '["dtype"][:-1]'), ENCODED, backends)
    assert detection is not None
    assert detection.case == ENCODED[0]
    assert caught(language, Fault("nothing", "main.py", "import base64", "import base64 "), ENCODED, backends) is None


def test_already_failing_case_catches_no_fault(backends: Servers, tmp_path: Path) -> None:
    wrong = [ENCODED[0] | {"id": "wrong", "want": {"as": "file"}}]
    assert caught(small_client(tmp_path), Fault("any", "main.py", '["dtype"]', '["shape"]'), wrong, backends) is None


def test_fault_that_matches_no_text_is_refused(backends: Servers, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is 0 times"):
        caught(small_client(tmp_path), Fault("none", "main.py", "no such text", ""), ENCODED, backends)


def small_client(folder: Path) -> Language:
    """A program in its own folder that encodes tensors."""
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
    """A stand-in for a live server that fails."""

    def expected_results(self, case: Case) -> dict[str, Any]:
        return {"results": [{"raised": {"type": "server", "status": 500}}]}

    def clear(self) -> None:
        pass


def test_live_server_failure_is_reported(backends: Servers) -> None:
    (reported,) = faults_found(echo(), LIVE[:1], replace(backends, plain=cast(Any, Failing())))
    assert reported is not None
    assert "the server itself failed" in reported


@pytest.mark.slow
@pytest.mark.parametrize("future", [False, True], ids=["today", "future"])
def test_live_server_gives_expected_results(future: bool) -> None:
    with servers(live=True, future=future) as backends:
        reported = faults_found(echo(), LIVE, backends)
        assert reported == [None] * len(LIVE)
        computed = [case for case in LIVE if "refused" not in case["id"] and "catalogue" not in case["id"]]
        assert None not in faults_found(echo("a bit"), computed, backends)


def test_every_client_has_seeded_faults() -> None:
    for language in LANGUAGES.values():
        faults = json.loads((language.folder / "faults.json").read_text(encoding="utf-8"))
        assert len(faults) >= 4
        for fault in faults:
            source = (language.folder / fault["file"]).read_text(encoding="utf-8")
            assert source.count(fault["old"]) == 1, (language, fault["name"])
