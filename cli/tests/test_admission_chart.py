"""charts/raybus-admission and docs/admission.md: current, and in a form that kubectl and Helm both take."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]
LONGEST_MESSAGE = 5 * 1024
"""Bytes that an API server takes of a message."""


@pytest.fixture(scope="module")
def admission() -> ModuleType:
    """tools/admission.py, a script and no package."""
    found = importlib.util.spec_from_file_location("admission", ROOT / "tools" / "admission.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_chart_is_current(admission: ModuleType) -> None:
    written = {path: path.read_text(encoding="utf-8") for path in admission.CHART.glob("*")}
    assert written == admission.charts(), "run `make crds`"


def test_the_page_is_current(admission: ModuleType) -> None:
    assert admission.PAGE.read_text(encoding="utf-8") == admission.page(), "run `make crds`"


def test_the_text_says_what_was_meant(admission: ModuleType) -> None:
    for policy in admission.POLICIES:
        text = (admission.CHART / f"{policy.plural}.yaml").read_text(encoding="utf-8")
        assert list(yaml.safe_load_all(text)) == admission.manifests(policy)
        assert "{{" not in text, "Helm would take it for a template"


def test_every_validation_has_a_message_of_one_line(admission: ModuleType) -> None:
    for policy in admission.POLICIES:
        for validation in admission.manifests(policy)[0]["spec"]["validations"]:
            (message,) = (validation[key] for key in ("message", "messageExpression") if key in validation)
            assert message and "\n" not in message and len(message) < LONGEST_MESSAGE
