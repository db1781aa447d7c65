"""KubeRay's environment variables reach the decisions (contract rayjob §0, §9.3)."""

import pytest

from raybus.job_ctl.service_settings import JobSettings, knobs
from raybus.job_ctl.settings import JobKnobs
from raybus.runtime.settings import SettingsError, load

TIMEOUT = "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS"
GRACE = "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS"


def read(**environment: str) -> JobKnobs:
    return knobs(load(JobSettings, [], environment))


def test_the_defaults_of_process_and_decisions_are_the_same() -> None:
    assert read() == JobKnobs()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({TIMEOUT: "120"}, JobKnobs(status_check_timeout=120), id="112: timeout"),
        pytest.param({TIMEOUT: "0"}, JobKnobs(), id="112: no timeout is none"),
        pytest.param({TIMEOUT: "-5"}, JobKnobs(), id="112: a negative one is none"),
        pytest.param({GRACE: "-5"}, JobKnobs(transition_grace=-5), id="a negative grace period is taken as given"),
        pytest.param({"DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "True"}, JobKnobs(delete_rayjob=True), id="delete the CR"),
        pytest.param({"ENABLE_LOGIN_SHELL": "true"}, JobKnobs(login_shell=True), id="login shell"),
        pytest.param({"CLUSTER_DOMAIN": "x.test"}, JobKnobs(cluster_domain="x.test"), id="cluster domain"),
        pytest.param({"RAYBUS_SUBMITTER": "ray"}, JobKnobs(submitter="ray"), id="KubeRay's way to submit"),
    ],
)
def test_environment(environment: dict[str, str], expected: JobKnobs) -> None:
    assert read(**environment) == expected


@pytest.mark.parametrize("environment", [{TIMEOUT: "soon"}, {"RAYBUS_SUBMITTER": "mail"}], ids=["number", "word"])
def test_what_cannot_be_read_is_refused_by_name(environment: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="status_check_timeout|submitter"):
        read(**environment)
