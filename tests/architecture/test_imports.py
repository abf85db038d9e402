"""Imports point one way: service → schemas, service → engine, and nothing back."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source import PACKAGES, ROOT, files, imports, imports_at_load, name

FORBIDDEN = {
    "schemas": {"engine", "service", "numpy", "cupy", "fastapi", "starlette"},
    "engine": {
        "schemas",
        "service",
        "pydantic",
        "fastapi",
        "starlette",
        "httpx",
        "aiohttp",
        "orjson",
    },
    "service": {"tests", "examples", "scripts"},
}


@pytest.mark.parametrize("package", PACKAGES)
def test_import_direction(package: str) -> None:
    assert files(package), f"{package} has no files: the rule would hold for nothing"
    broken = {
        name(path): sorted(roots)
        for path in files(package)
        if (roots := {module.partition(".")[0] for module in imports(path)} & FORBIDDEN[package])
    }
    assert not broken, f"{package} may not import these: {broken}"


@pytest.mark.parametrize(("package", "absent"), [("engine", "pydantic"), ("schemas", "numpy"), ("service.app", "cupy")])
def test_what_importing_a_package_loads(package: str, absent: str) -> None:
    """What the statements promise, the interpreter confirms, indirect imports included."""
    program = f"import sys, {package}; sys.exit({absent!r} in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"importing {package} loads {absent}: {run.stderr}"


def test_the_front_does_not_load_the_engine() -> None:
    """It computes nothing; it needs the leaves that messages, errors and figures are made of."""
    program = """
import sys, service.app
loaded = {name for name in sys.modules if name.startswith(("engine", "service.workers.executions"))}
print(*sorted(loaded))
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert not [
        name for name in loaded if name.startswith(("service.workers.executions", "engine.ops", "engine.compiler"))
    ]
    assert len(loaded) <= 40, loaded


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_command_says_what_it_is_without_the_server(argument: str) -> None:
    program = """
import sys
from service.__main__ import main
sys.argv = ["gradserve", sys.argv[1]]
try:
    main()
except SystemExit:
    print({"numpy", "pydantic", "fastapi"} & sys.modules.keys())
"""
    arguments = [sys.executable, "-c", program, argument]
    run = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "set()"


ENGINE_TESTS = ("tests.engine", "tests.contract")
#: what they share with others
SHARED = frozenset({"tests.conftest", "tests.copied_tree", "tests.sampling"})
#: the independent values that the tests of the engine read; what asks the service for them is in test_*.py beside them
TABLES = [path for path in files("tests/reference") if not path.name.startswith("test_")]


def on_a_gpu_machine(module: str) -> bool:
    """Whether `make test-gpu` can import it: NumPy, CuPy, pytest and hypothesis are there, and the engine."""
    there = {"engine", "numpy", "cupy", "cupyx", "pytest", "hypothesis", *sys.stdlib_module_names}
    tables = {
        "tests.conftest",
        "tests.copied_tree",
        "tests.sampling",
        "tests.reference",
        *(f"tests.reference.{path.stem}" for path in TABLES),
    }
    return module.partition(".")[0] in there or module.startswith(ENGINE_TESTS) or module in tables


def test_the_tests_of_the_engine_run_without_the_service() -> None:
    read = [
        ROOT / "tests/conftest.py",
        ROOT / "tests/copied_tree.py",
        ROOT / "tests/sampling.py",
        *TABLES,
        *files(*(package.replace(".", "/") for package in ENGINE_TESTS)),
    ]
    absent = {name(path): [m for m in imports_at_load(path) if not on_a_gpu_machine(m)] for path in read}
    assert not {path: modules for path, modules in absent.items() if modules}


def test_the_work_knows_no_http() -> None:
    http = {"fastapi", "starlette", "h11", "httpx", "aiohttp"}
    work = files("service/api", "service/workers")
    assert work
    assert not {name(path) for path in work if {m.partition(".")[0] for m in imports(path)} & http}


def test_every_package_is_typed() -> None:
    assert not [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()]
