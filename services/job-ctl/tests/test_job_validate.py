"""What is refused, with which event reason (contract rayjob §9.1; the numbers are its scenarios)."""

from typing import Any

import pytest
from jobworld import rayjob

from raybus.job_ctl import runtime_env
from raybus.job_ctl.settings import JobKnobs
from raybus.job_ctl.validate import problem
from raybus.testkit.refused_jobs import CASES, SPEC, rule, rules


@pytest.mark.parametrize(("fields", "reason"), [pytest.param(f, r, id=name) for name, f, r in CASES])
def test_spec(fields: dict[str, Any], reason: str) -> None:
    found = problem(rayjob(**fields), JobKnobs())
    assert (str(found.reason) if found else "") == reason, found
    assert found is None or found.text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("x" * 48, "no more than 47", id="26: 48 characters"),
        pytest.param("1" * 47, "RFC-1035", id="27: 47 digits"),
        pytest.param("a.b", "RFC-1035", id="60: dotted"),
        pytest.param("x" * 47, "", id="28: 47 letters"),
    ],
)
def test_metadata(name: str, words: str) -> None:
    found = problem(rayjob(name=name), JobKnobs())
    assert (found is None) == (not words)
    assert found is None or (found.reason == "InvalidRayJobMetadata" and words in found.text)


def test_23_waiting_is_a_status_of_interactive_mode_only() -> None:
    found = problem(rayjob(status={"jobDeploymentStatus": "Waiting"}), JobKnobs())
    assert found is not None and found.reason == "InvalidRayJobStatus"


def test_a_phase_that_only_another_operator_stores_is_refused() -> None:
    found = problem(rayjob(status={"jobDeploymentStatus": "Suspended"}), JobKnobs())
    assert found is not None and found.reason == "NotSupported" and "Suspended" in found.text


def test_33_a_strategy_needs_its_feature_gate() -> None:
    found = problem(rayjob(**rules(rule("DeleteSelf"))), JobKnobs(deletion_policy=False))
    assert found is not None and found.reason == SPEC and "RayJobDeletionPolicy" in found.text


def test_problems_of_rules_are_reported_together_with_their_number() -> None:
    found = problem(rayjob(**rules(rule("DeleteSelf", -1), rule("DeleteCluster"), rule("DeleteCluster"))), JobKnobs())
    assert found is not None
    assert [line.split(":")[0] for line in found.text.splitlines()] == ["deletionRules[0]", "deletionRules[2]"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", {}, id="61: empty"),
        pytest.param("# nothing", {}, id="only a comment"),
        pytest.param("pip: [numpy]\nenv_vars: {A: b}", {"pip": ["numpy"], "env_vars": {"A": "b"}}, id="63: a mapping"),
        pytest.param("day: 2026-01-02", {"day": "2026-01-02"}, id="a date stays text"),
        pytest.param("{2: a, true: b}", {"2": "a", "true": "b"}, id="keys become text"),
    ],
)
def test_runtime_env_is_read_as_json(text: str, value: object) -> None:
    assert runtime_env.parse(text) == value
