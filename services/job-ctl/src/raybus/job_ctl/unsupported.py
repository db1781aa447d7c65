"""What a RayJob may ask for and Raybus does not do yet: refused by name, never silently ignored.

Each row goes away with the code that replaces it; `docs/scope.md` is written from the table.
"""

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.cel import text, texts
from raybus.api.rules import Cel, Found, NotInCel, Rule
from raybus.api.v1 import NEW, SubmissionMode
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.job_ctl.asked import SPEC, Asked

_PHASES = {NEW, P.INITIALIZING, P.RUNNING, P.COMPLETE, P.FAILED, P.RETRYING, P.VALIDATION_FAILED}
"""What is built; the others only another operator can have stored."""
_LATER = "is not supported by Raybus yet; remove it, or leave this RayJob to another operator"
_MODES = ("", *SubmissionMode)


class Row(NamedTuple):
    """`field`: what is refused, for the page."""

    field: str
    rule: Rule[Asked]


def _field(path: str, asks: Callable[[Asked], bool], cel: str) -> Row:
    return Row(f"spec.{path}", Rule(f"{path} {_LATER}", asks, Cel(cel)))


def _mode(name: SubmissionMode) -> Row:
    return Row(
        f"spec.submissionMode: {name}",
        Rule(
            f"submissionMode {name} is not supported by Raybus yet; use K8sJobMode or HTTPMode",
            lambda asked: asked.spec.submission_mode == name,
            Cel(f"variables.mode == {text(name)}"),
        ),
    )


def _unknown_mode(asked: Asked) -> Found:
    mode = asked.spec.submission_mode
    return (mode,) if mode not in _MODES else False


def _asks_for_token(asked: Asked) -> bool:
    cluster = asked.spec.ray_cluster_spec
    return cluster is not None and cluster.auth_options is not None and cluster.auth_options.mode == "token"


def _foreign_phase(asked: Asked) -> Found:
    phase = asked.job.status.job_deployment_status
    return (phase,) if phase not in _PHASES else False


TABLE: tuple[Row, ...] = (
    _mode(SubmissionMode.INTERACTIVE),
    _mode(SubmissionMode.SIDECAR),
    Row(
        "spec.submissionMode: any other word",
        Rule(
            "submissionMode {} is unknown; use K8sJobMode or HTTPMode",
            _unknown_mode,
            Cel(f"!(variables.mode in {texts(_MODES)})", ("variables.mode",)),
        ),
    ),
    _field("clusterSelector", lambda asked: bool(asked.spec.cluster_selector), "size(variables.selector) > 0"),
    _field("suspend", lambda asked: asked.spec.suspend, f"{SPEC}.?suspend.orValue(false)"),
    _field(
        "deletionStrategy",
        lambda asked: asked.spec.deletion_strategy is not None,
        f"{SPEC}.?deletionStrategy.hasValue()",
    ),
    Row(
        "spec.rayClusterSpec.authOptions.mode: token",
        Rule(
            f"rayClusterSpec.authOptions.mode token {_LATER}",
            _asks_for_token,
            Cel(f"{SPEC}.?rayClusterSpec.?authOptions.?mode.orValue('') == 'token'"),
        ),
    ),
    Row(
        "status.jobDeploymentStatus: Waiting, Suspending, Suspended",
        Rule(
            "jobDeploymentStatus {}, left by another operator, is not supported yet",
            _foreign_phase,
            NotInCel("the status is not looked at"),
        ),
    ),
)
