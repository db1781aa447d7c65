"""docs/scope.md: current, and every field of the specs is either built or refused."""

import importlib.util
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from raybus.api.v1 import RayClusterSpec, RayJobSpec

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scope() -> ModuleType:
    """tools/scope_page.py, a script and no package."""
    found = importlib.util.spec_from_file_location("scope_page", ROOT / "tools" / "scope_page.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def fields(kind: type[msgspec.Struct]) -> set[str]:
    """Names of the fields on the wire."""
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def test_the_page_is_current(scope: ModuleType) -> None:
    assert scope.PAGE.read_text(encoding="utf-8") == scope.page(), "run `make diagrams`"


def test_every_field_of_a_raycluster_is_built(scope: ModuleType) -> None:
    assert fields(RayClusterSpec) == set(scope.RAYCLUSTER)


def test_every_field_of_a_rayjob_is_built_or_refused(scope: ModuleType) -> None:
    assert fields(RayJobSpec) == set(scope.RAYJOB) | scope.refused_fields()
    assert not set(scope.RAYJOB) & scope.refused_fields()
