"""What a guard sees: the view, the time, the settings and the status as it is being worked out."""

from msgspec import Struct

from raybus.api.times import Instant, parse_time
from raybus.api.v1 import JobStatus, RayJobSpec, RayJobStatus, SubmissionMode
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.seen import JobSeen, ObjectCondition
from raybus.job_ctl.settings import JobKnobs
from raybus.job_ctl.validate import Problem

ENDED = (JobStatus.SUCCEEDED, JobStatus.STOPPED, JobStatus.FAILED)
"""Words of Ray after which a job never changes again."""


class Trouble(Struct, frozen=True):
    """Ray cannot be asked about the job. `seen`: when the look that found this began; `text`: why, for people."""

    seen: Instant
    text: str


class Answered(Struct, frozen=True):
    """Ray has been heard; it may have said that it does not know the job."""


class Situation(Struct, frozen=True, kw_only=True):
    """`status`: the next status so far, what Ray and the cluster say already taken in. `trouble`: see `Trouble`.
    `fresh`: this very pass brought the RayJob into its phase, nothing of it is stored yet."""

    view: JobView
    now: Instant
    knobs: JobKnobs
    status: RayJobStatus
    problem: Problem | None = None
    trouble: Trouble | None = None
    fresh: bool = False

    @property
    def spec(self) -> RayJobSpec:
        """The wanted run."""
        return self.view.job.spec

    @property
    def phase(self) -> str:
        """`jobDeploymentStatus` as it is being worked out."""
        return self.status.job_deployment_status

    @property
    def by_http(self) -> bool:
        """Whether the control plane submits by itself; else a Kubernetes Job does."""
        return self.spec.submission_mode == SubmissionMode.HTTP

    @property
    def ended(self) -> bool:
        """Whether Ray has said that the job has ended."""
        return self.status.job_status in ENDED


class Finish(Struct, frozen=True):
    """How the submitter's Job ended. `at` is cut to the second, so only `seen_after` is surely later."""

    failed: bool
    at: Instant
    reason: str
    message: str

    @property
    def seen_after(self) -> Instant:
        """The first instant that is certainly after the end."""
        return Instant(self.at + 1)


def finish(job: JobSeen | None) -> Finish | None:
    """The end of the submitter's Job; None while it goes on, or is not there (contract rayjob §3.1)."""
    if job is None:
        return None
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.status == "True":
            return Finish(condition.type == "Failed", _at(condition), condition.reason, condition.message)
    return None


def _at(condition: ObjectCondition) -> Instant:
    return parse_time(condition.last_transition_time) if condition.last_transition_time else Instant(0.0)


def submitter_started(view: JobView) -> bool:
    """Whether a submitter pod has run, so that something may have reached Ray (ADR 0062)."""
    job = view.submitter
    if job is None:
        return False
    counts = job.status.failed + job.status.succeeded
    return (
        counts > 0 or finish(job) is not None or any(p.status.phase not in ("", "Pending") for p in view.submitter_pods)
    )


def submitter_done(s: Situation) -> bool:
    """Whether no submitter is left to wait for: none in this mode, ended, or deleted by someone (ADR 0063)."""
    return s.by_http or s.view.submitter is None or finish(s.view.submitter) is not None


def since(text: str | None, seconds: float) -> Instant | None:
    """`seconds` after the RFC 3339 time `text`; None without one."""
    return Instant(parse_time(text) + seconds) if text else None


def cluster_ready(view: JobView) -> bool:
    """Whether the attempt's cluster runs and stays."""
    cluster = view.cluster
    return cluster is not None and cluster.metadata.deletion_timestamp is None and cluster.status.state == "ready"
