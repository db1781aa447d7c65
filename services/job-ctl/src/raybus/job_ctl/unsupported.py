"""What a RayJob may ask for and Raybus does not do yet: refused by name, never silently ignored.

Each row goes away with the code that replaces it; `docs/scope.md` is written from the table.
"""

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.v1 import NEW, RayJob, SubmissionMode
from raybus.api.v1 import JobDeploymentStatus as P

_PHASES = {NEW, P.INITIALIZING, P.RUNNING, P.COMPLETE, P.FAILED, P.RETRYING, P.VALIDATION_FAILED}
"""What is built; the others only another operator can have stored."""
_LATER = "is not supported by Raybus yet; remove it, or leave this RayJob to another operator"


class Row(NamedTuple):
    """`field`: what is refused, for the page. `asks`: whether a RayJob sets it. `sentence`: for its user."""

    field: str
    asks: Callable[[RayJob], object]
    sentence: Callable[[RayJob], str]


def _field(path: str, asks: Callable[[RayJob], object]) -> Row:
    return Row(f"spec.{path}", asks, lambda _: f"{path} {_LATER}")


def _mode(name: SubmissionMode) -> Row:
    return Row(
        f"spec.submissionMode: {name}",
        lambda job: job.spec.submission_mode == name,
        lambda _: f"submissionMode {name} is not supported by Raybus yet; use K8sJobMode or HTTPMode",
    )


def _asks_for_token(job: RayJob) -> bool:
    cluster = job.spec.ray_cluster_spec
    return cluster is not None and cluster.auth_options is not None and cluster.auth_options.mode == "token"


TABLE: tuple[Row, ...] = (
    _mode(SubmissionMode.INTERACTIVE),
    _mode(SubmissionMode.SIDECAR),
    Row(
        "spec.submissionMode: any other word",
        lambda job: job.spec.submission_mode not in ("", *SubmissionMode),
        lambda job: f"submissionMode {job.spec.submission_mode} is unknown; use K8sJobMode or HTTPMode",
    ),
    _field("clusterSelector", lambda job: job.spec.cluster_selector),
    _field("suspend", lambda job: job.spec.suspend),
    _field("deletionStrategy", lambda job: job.spec.deletion_strategy is not None),
    Row(
        "spec.rayClusterSpec.authOptions.mode: token",
        _asks_for_token,
        lambda _: f"rayClusterSpec.authOptions.mode token {_LATER}",
    ),
    Row(
        "status.jobDeploymentStatus: Waiting, Suspending, Suspended",
        lambda job: job.status.job_deployment_status not in _PHASES,
        lambda job: (
            f"jobDeploymentStatus {job.status.job_deployment_status}, left by another operator, is not supported yet"
        ),
    ),
)


def refusal(job: RayJob) -> str:
    """The sentence of the first row that holds, "" for a RayJob that asks for nothing of the kind."""
    return next((row.sentence(job) for row in TABLE if row.asks(job)), "")
