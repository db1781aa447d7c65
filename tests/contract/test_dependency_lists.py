"""The second lock on "no credential" (design §2): each package imports only what its own dependency list names, and
the lists of the controllers lead neither to Kubernetes nor to Ray."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(
    path.parent for room in ("libs/*", "services/*", "cli", "dev") for path in ROOT.glob(f"{room}/pyproject.toml")
)
REACHES_OUT = {"kubernetes", "httpx", "httpx-aiohttp", "aiohttp", "raybus-kube", "raybus-ray"}
"""What could talk to an API server or a dashboard."""
PROVIDERS = packages_distributions()


def canonical(name: str) -> str:
    """A distribution's name as PyPI compares it, without version, extras and markers."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;(]", name.strip(), maxsplit=1)[0]).lower()


@cache
def declared(package: Path) -> frozenset[str]:
    """The distributions that a package's own pyproject.toml lists."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    return frozenset(canonical(item) for item in project["dependencies"])


def imported(package: Path) -> Iterator[tuple[str, str]]:
    """(file and line, dotted module) of every import in a package's sources, also those inside functions."""
    for path in sorted((package / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: imports are absolute"
                names = [node.module or ""]
                if names == ["raybus"]:
                    names = [f"raybus.{alias.name}" for alias in node.names]
            yield from ((f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", name) for name in names)


def distributions(module: str) -> set[str]:
    """The distributions that may provide a module; none for the standard library."""
    parts = module.split(".")
    if parts[0] in sys.stdlib_module_names:
        return set()
    if parts[0] == "raybus":
        return {canonical(f"raybus-{parts[1]}")}
    return {canonical(name) for name in PROVIDERS.get(parts[0], [parts[0]])}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_imports_only_what_its_own_list_names(package: Path) -> None:
    allowed = declared(package) | {canonical(f"raybus-{package.name}")}
    undeclared = {
        f"{where} imports {module}: {' or '.join(sorted(found))} is not in {package.name}/pyproject.toml"
        for where, module in imported(package)
        if (found := distributions(module)) and not found & allowed
    }
    assert not undeclared, "\n".join(sorted(undeclared))


def closure(names: frozenset[str], ours: Mapping[str, Path]) -> set[str]:
    """Everything that is installed with `names`."""
    found: set[str] = set()
    todo = set(names)
    while todo:
        name = todo.pop()
        found.add(name)
        listed = (
            declared(ours[name])
            if name in ours
            else {canonical(item) for item in requires(name) or () if "extra ==" not in item}
        )
        todo |= listed - found
    return found


@pytest.mark.parametrize("service", ["cluster-ctl", "job-ctl", "serve-ctl"])
def test_what_is_installed_with_a_controller_cannot_reach_kubernetes_or_ray(service: str) -> None:
    ours = {canonical(f"raybus-{path.name}"): path for path in PACKAGES}
    assert not closure(frozenset({f"raybus-{service}"}), ours) & REACHES_OUT


def test_the_submitter_depends_on_nothing() -> None:
    assert declared(ROOT / "services" / "submitter") == frozenset()
