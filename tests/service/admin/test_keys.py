"""`gradserve keys`: its output, the key file, and refusals in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from service.cli import main
from service.core.keys.caller import KeyScope, digest_of
from service.core.keys.key_file import read_keys

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def add_key(capsys: Capture, file: Path, *arguments: str) -> str:
    main(["keys", "add", *arguments, "--keys-file", str(file)])
    return capsys.readouterr().out.rstrip("\n")


def error_message(capsys: Capture, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["keys", *arguments])
    output = capsys.readouterr()
    assert (ended.value.code, output.out) == (2, "")
    assert output.err.startswith("gradserve: ")
    assert output.err.count("\n") == 1
    return output.err.removeprefix("gradserve: ").rstrip("\n")


def test_key_is_printed_once_and_its_hash_is_stored(capsys: Capture, file: Path) -> None:
    key = add_key(capsys, file, "alice")
    assert re.fullmatch(r"gs_[A-Za-z0-9_-]{43}", key)
    (alice,) = read_keys(file)
    assert alice.sha256 == digest_of(key).hex()
    assert (alice.name, alice.namespace, alice.rate, alice.concurrency) == ("alice", "alice", None, None)
    assert alice.scopes == (KeyScope.COMPUTE, KeyScope.READ, KeyScope.WRITE)
    main(["keys", "list", "--keys-file", str(file)])
    listed = capsys.readouterr().out
    assert "alice" in listed
    assert key not in listed + file.read_text(encoding="ascii")
    assert alice.sha256 not in listed


def test_all_options_of_a_key(capsys: Capture, file: Path) -> None:
    more = ["--scopes", "read, admin,read", "--namespace", "team", "--rate", "600/min", "--concurrency", "4"]
    more += ["--max-tensors", "5", "--max-graph-bytes", "1MiB"]
    add_key(capsys, file, "watch", *more)
    (key,) = read_keys(file)
    assert (key.scopes, key.namespace) == ((KeyScope.READ, KeyScope.ADMIN), "team")
    assert (key.rate, key.concurrency) == ("600/min", 4)
    assert (key.max_tensors, key.max_graph_bytes, key.max_graphs) == (5, 1 << 20, None)
    main(["keys", "list", "--keys-file", str(file)])
    assert re.search(
        r"^watch +team +read,admin +600/min +4 +max-graph-bytes=1048576,max-tensors=5 +20\S+Z$",
        capsys.readouterr().out,
        re.MULTILINE,
    )


def test_namespace_may_be_empty(capsys: Capture, file: Path) -> None:
    add_key(capsys, file, "old", "--namespace", "")
    assert read_keys(file)[0].namespace == ""


def test_key_is_revoked_by_name(capsys: Capture, file: Path) -> None:
    for name in ("alice", "bob"):
        add_key(capsys, file, name)
    main(["keys", "revoke", "alice", "--keys-file", str(file)])
    assert capsys.readouterr().out == f"alice is revoked; servers that use {file} reject it within 2 s\n"
    assert [key.name for key in read_keys(file)] == ["bob"]


def test_key_file_from_the_environment(capsys: Capture, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_KEYS_FILE", str(file))
    main(["keys", "add", "alice"])
    assert [key.name for key in read_keys(file)] == ["alice"]
    capsys.readouterr()
    assert error_message(capsys, "list", "--keys-file", "none").startswith("no key file is set; ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "a/b"], "a name has at most 64 letters, .*; got “a/b”$"),
        (["add", ""], "a name has at most 64 letters, .*; got an empty text$"),
        (["add", "a\nb"], "a name has at most 64 letters, "),
        (["add", "x" * 65], "a name has at most 64 letters, "),
        (["add", "a", "--scopes", "all"], "scopes are one or more of compute, read, write, admin, .*; got “all”$"),
        (["add", "a", "--scopes", ""], "scopes are one or more of "),
        (["add", "a", "--namespace", "a b"], "a namespace has at most 64 letters"),
        (["add", "a", "--rate", "10"], "a rate is a whole number of requests per s, min or h, .*; got “10”$"),
        (["add", "a", "--concurrency", "0"], "the concurrency must be a whole number of at least 1; got “0”$"),
        (["add", "a", "--concurrency", "some"], "the concurrency must be a whole number of at least 1; got “some”$"),
        (["add", "a", "--max-tensors", "-1"], "a quota is a whole number; .*; got “-1”$"),
        (["add", "a", "--max-answer-bytes", "1X"], "a quota is .* as in 64MiB; got “1X”$"),
        (["revoke", "bob"], "there is no key called bob; gradserve keys list shows all keys$"),
        (["add", "alice"], "a key called alice already exists; revoke it, or choose another name$"),
    ],
)
def test_invalid_arguments_are_refused_without_changes(
    capsys: Capture, file: Path, arguments: list[str], said: str
) -> None:
    add_key(capsys, file, "alice")
    before = file.read_bytes()
    assert re.match(said, error_message(capsys, *arguments, "--keys-file", str(file)))
    assert file.read_bytes() == before


@pytest.mark.parametrize("action", [["list"], ["revoke", "alice"]])
def test_missing_key_file_is_reported(capsys: Capture, file: Path, action: list[str]) -> None:
    message = error_message(capsys, *action, "--keys-file", str(file))
    assert message == f"cannot use the key file {file}: No such file or directory"
    assert not file.exists()


def test_unspecified_key_file_is_reported(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADSERVE_KEYS_FILE", raising=False)
    assert error_message(capsys, "list") == "no key file is set; use --keys-file FILE or GRADSERVE_KEYS_FILE"


def test_broken_key_file_is_not_changed(capsys: Capture, file: Path) -> None:
    file.write_text("{", encoding="ascii")
    file.chmod(0o600)
    message = error_message(capsys, "add", "alice", "--keys-file", str(file))
    assert message == f"cannot use the key file {file}: it is not JSON"
    assert file.read_text(encoding="ascii") == "{"


def test_unknown_action_is_refused(capsys: Capture) -> None:
    assert "invalid choice: 'remove'" in error_message(capsys, "remove", "alice")
