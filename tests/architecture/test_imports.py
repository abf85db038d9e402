"""Import direction between packages: service → schemas and service → engine only."""

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
def test_package_import_does_not_load_module(package: str, absent: str) -> None:
    """Check indirect imports, too, in a fresh interpreter."""
    program = f"import sys, {package}; sys.exit({absent!r} in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"importing {package} loads {absent}: {run.stderr}"


def test_front_does_not_load_engine() -> None:
    """Allow only the few engine modules that define messages, errors and metrics."""
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
def test_version_and_help_do_not_load_server(argument: str) -> None:
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
#: modules that they share with other tests
SHARED = frozenset({"tests.conftest", "tests.copied_tree", "tests.sampling"})
#: reference values that the engine tests read; the test_*.py files next to them use the service
TABLES = [path for path in files("tests/reference") if not path.name.startswith("test_")]


def is_available_for_gpu_tests(module: str) -> bool:
    """Return whether `make test-gpu` can import the module: NumPy, CuPy, pytest, hypothesis and the engine."""
    available = {"engine", "numpy", "cupy", "cupyx", "pytest", "hypothesis", *sys.stdlib_module_names}
    tables = {
        "tests.conftest",
        "tests.copied_tree",
        "tests.sampling",
        "tests.reference",
        *(f"tests.reference.{path.stem}" for path in TABLES),
    }
    return module.partition(".")[0] in available or module.startswith(ENGINE_TESTS) or module in tables


def test_engine_tests_do_not_import_service() -> None:
    paths = [
        ROOT / "tests/conftest.py",
        ROOT / "tests/copied_tree.py",
        ROOT / "tests/sampling.py",
        *TABLES,
        *files(*(package.replace(".", "/") for package in ENGINE_TESTS)),
    ]
    unavailable = {
        name(path): [m for m in imports_at_load(path) if not is_available_for_gpu_tests(m)] for path in paths
    }
    assert not {path: modules for path, modules in unavailable.items() if modules}


def test_workers_do_not_import_http_libraries() -> None:
    http = {"fastapi", "starlette", "h11", "httpx", "aiohttp"}
    paths = files("service/api", "service/workers")
    assert paths
    assert not {name(path) for path in paths if {m.partition(".")[0] for m in imports(path)} & http}


def test_packages_contain_py_typed() -> None:
    assert not [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()]
