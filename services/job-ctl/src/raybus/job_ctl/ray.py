"""What Ray is asked about the job, and what its answers mean (design §3, "Facts have a time"; ADR 0061, 0062)."""

from raybus.api.decision import Ask, Head, ProbeJob, StopJob, SubmitJob
from raybus.api.messages import Fact
from raybus.api.times import Instant
from raybus.api.v1 import JobDeploymentStatus
from raybus.job_ctl.build.http_request import submit_request
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.labels import DASHBOARD_PORT
from raybus.job_ctl.settings import JobKnobs
from raybus.job_ctl.situation import Answered, Situation, Trouble, submitter_started

FRESH, FRESH_SOON = 3.0, 1.0
"""Seconds after which an unchanged answer is confirmed: in general (KubeRay's poll), and while a verdict waits."""


def dashboard(view: JobView, knobs: JobKnobs) -> str:
    """Host and port of the dashboard as seen inside the cluster, "" while they are not known (contract rayjob §2.4)."""
    cluster = view.cluster
    if cluster is None or not cluster.status.head.service_name:
        return ""
    service = view.cluster_service
    ports = {p.name: str(p.port) for p in service.spec.ports} if service else cluster.status.endpoints
    port = ports.get(DASHBOARD_PORT, "")
    return f"{cluster.status.head.service_name}.{view.namespace}.svc.{knobs.cluster_domain}:{port}" if port else ""


def head(view: JobView) -> Head | None:
    """The head that is asked; None while there is none or its address is not stored."""
    if view.cluster is None or view.head is None or not view.status.dashboard_url:
        return None
    return Head(
        cluster=view.cluster.metadata.name,
        pod_uid=view.head.metadata.uid,
        service=view.cluster.status.head.service_name,
        url=f"http://{view.status.dashboard_url}",
    )


def on_stored_head(view: JobView) -> bool:
    """Whether the stored status names the present head: actions and verdicts are bound to it (design §3)."""
    return view.head is not None and view.status.ray_cluster_status.head.pod_name == view.head.metadata.name


def probe_id(job_id: str) -> str:
    """Id of the ask that polls a job."""
    return f"probe-{job_id}"


def submit_id(job_id: str) -> str:
    """Id of the ask that submits a job."""
    return f"submit-{job_id}"


def stop_id(job_id: str) -> str:
    """Id of the ask that stops a job."""
    return f"stop-{job_id}"


def _fact(view: JobView, ask: str) -> Fact | None:
    """The answer of the present head; that of an earlier one says nothing."""
    fact = view.facts.get(ask)
    return fact if fact is not None and view.head is not None and fact.head == view.head.metadata.uid else None


def probe(view: JobView) -> Fact | None:
    """What the present head says of the stored job id."""
    return _fact(view, probe_id(view.status.job_id))


def submitted(view: JobView) -> Fact | None:
    """How the present head took the submission."""
    return _fact(view, submit_id(view.status.job_id))


def looked_after_submission(view: JobView) -> bool:
    """Whether the present head took the submission, and the last look at the job began after that.

    Both are the prober's times, but its clock may have been set back in between: then only the order in which the
    facts were told shows which came first.
    """
    fact, submission, job_id = probe(view), submitted(view), view.status.job_id
    if fact is None or submission is None or submission.outcome != "ok":
        return False
    in_order = view.told.get(probe_id(job_id), 0) >= view.told.get(submit_id(job_id), 0)
    return fact.begun > submission.at and in_order


def stopped(view: JobView) -> Fact | None:
    """How the present head took the request to stop the job."""
    return _fact(view, stop_id(view.status.job_id))


def trouble(view: JobView, now: Instant, by_http: bool) -> Trouble | Answered | None:
    """Whether Ray can be asked about the job; None if nothing is known either way.

    With a submitter nothing is expected of Ray before a submitter pod has run (ADR 0062).
    """
    fact = probe(view)
    if fact is not None and fact.outcome == "ok":
        return Answered()
    expected = by_http or bool(view.status.job_status) or submitter_started(view)
    if view.head is None:
        return Trouble(now, f"RayCluster {view.status.ray_cluster_name} has no running head pod") if expected else None
    if fact is None:
        return None
    if fact.outcome != "missing":
        return Trouble(fact.begun, fact.text) if expected else None
    if not by_http:
        return Answered()
    submission = submitted(view)
    if submission is None:
        return None
    return (
        Answered() if submission.outcome == "ok" else Trouble(submission.begun, f"submission failed: {submission.text}")
    )


def looked_after(s: Situation, deadline: Instant) -> bool:
    """Whether the job was looked at after `deadline`: by a probe begun later, whatever it brought, or, while there is
    no head to probe, by the view as it is now (design §3)."""
    if s.now < deadline:
        return False
    fact = probe(s.view)
    return s.view.head is None or (fact is not None and fact.begun >= deadline)


def asks(view: JobView, by_http: bool, soon: bool) -> tuple[Ask, ...]:
    """What the *stored* status allows to ask. `soon`: a verdict waits for a fresh look."""
    status, target = view.status, head(view)
    if status.job_deployment_status != JobDeploymentStatus.RUNNING or target is None or not status.job_id:
        return ()
    job_id = status.job_id
    look = ProbeJob(id=probe_id(job_id), head=target, job_id=job_id, fresh=FRESH_SOON if soon else FRESH)
    if not by_http or status.job_status or not on_stored_head(view):
        return (look,)
    fact = probe(view)
    unknown = fact is not None and fact.outcome == "missing"
    # Once asked, it stays asked until Ray's word is stored: its fact is the prober's memory of having done it.
    if not unknown and submitted(view) is None:
        return (look,)
    request = submit_request(view.job.spec, job_id)
    return (look, SubmitJob(id=submit_id(job_id), head=target, job_id=job_id, request=request))


def stop(view: JobView) -> StopJob | None:
    """The request to stop what the stored status says may run; None if nothing can be running or reached."""
    status, target = view.status, head(view)
    if status.job_deployment_status != JobDeploymentStatus.RUNNING or target is None or not on_stored_head(view):
        return None
    return StopJob(id=stop_id(status.job_id), head=target, job_id=status.job_id)
