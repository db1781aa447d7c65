"""What is wrong with a RayJob: the contract's checks in the contract's order (rayjob §1.4), then what is not built.

The first problem wins. Nothing here depends on the time or on children.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from raybus.api.reasons import Reason
from raybus.api.v1 import JobDeploymentStatus, RayClusterSpec, RayJob, RayJobSpec, SubmissionMode
from raybus.job_ctl import runtime_env
from raybus.job_ctl.labels import CLUSTER, MAX_NAME
from raybus.job_ctl.settings import JobKnobs
from raybus.job_ctl.unsupported import refusal
from raybus.job_ctl.validate_deletion import deletion_problem

_RFC1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_METADATA_SINCE = (2, 6, 0)
_INVALID = "The RayJob spec is invalid: "


class Problem(NamedTuple):
    """`reason` of the Warning event, and the sentence that event and `status.message` carry."""

    reason: Reason
    text: str


def problem(job: RayJob, knobs: JobKnobs) -> Problem | None:
    """Why `job` is not carried out; None if all is well."""
    text = _metadata(job)
    if text:
        return Problem(Reason.INVALID_RAY_JOB_METADATA, text)
    text = next(filter(None, (check(job, knobs) for check in _SPEC)), "")
    if text:
        return Problem(Reason.INVALID_RAY_JOB_SPEC, text)
    text = _status(job)
    if text:
        return Problem(Reason.INVALID_RAY_JOB_STATUS, text)
    text = refusal(job)
    return Problem(Reason.NOT_SUPPORTED, text) if text else None


# ------------------------------------------------------------------ metadata and status
def _metadata(job: RayJob) -> str:
    name = job.metadata.name
    if len(name) > MAX_NAME:
        return f"RayJob name should be no more than {MAX_NAME} characters, but {name!r} has {len(name)}"
    if not _RFC1035.fullmatch(name):
        return (
            f"RayJob name {name!r} must be an RFC-1035 label: lower-case letters, digits and '-', beginning with a "
            "letter and ending with a letter or digit"
        )
    return ""


def _status(job: RayJob) -> str:
    waiting = job.status.job_deployment_status == JobDeploymentStatus.WAITING
    if waiting and job.spec.submission_mode != SubmissionMode.INTERACTIVE:
        return "The RayJob status is invalid: jobDeploymentStatus Waiting is only possible in InteractiveMode"
    return ""


# ------------------------------------------------------------------ spec, in the contract's order
def _suspend(job: RayJob, _: JobKnobs) -> str:
    if job.spec.suspend and not job.spec.shutdown_after_job_finishes:
        return _INVALID + "a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended"
    return ""


def _ttl(job: RayJob, _: JobKnobs) -> str:
    if job.spec.ttl_seconds_after_finished < 0:
        return _INVALID + "ttlSecondsAfterFinished must be 0 or more"
    return ""


def _deletion(job: RayJob, knobs: JobKnobs) -> str:
    return deletion_problem(job.spec, knobs.deletion_policy)


def _cluster(job: RayJob, _: JobKnobs) -> str:
    spec, selector = job.spec, job.spec.cluster_selector
    if spec.suspend and selector:
        return _INVALID + "suspend is not possible together with clusterSelector"
    if spec.ray_cluster_spec is None and not selector:
        return _INVALID + "one of RayClusterSpec or ClusterSelector must be set"
    if not selector:
        return ""
    if not selector.get(CLUSTER):
        return _INVALID + f"clusterSelector needs the name of a RayCluster under key {CLUSTER}"
    if spec.submission_mode == SubmissionMode.SIDECAR:
        return _INVALID + "clusterSelector is not possible in SidecarMode"
    if (spec.backoff_limit or 0) > 0:
        return _INVALID + "backoffLimit above 0 is not possible together with clusterSelector"
    return ""


def _modes(job: RayJob, _: JobKnobs) -> str:
    spec, mode = job.spec, job.spec.submission_mode
    if mode == SubmissionMode.INTERACTIVE and (spec.backoff_limit or 0) > 0:
        return _INVALID + "backoffLimit above 0 is not possible in InteractiveMode"
    if mode != SubmissionMode.SIDECAR:
        return ""
    if spec.submitter_pod_template is not None:
        return _INVALID + "submitterPodTemplate is not possible in SidecarMode"
    if spec.submitter_config is not None:
        return _INVALID + "submitterConfig is not possible in SidecarMode"
    policy = _head_pod(spec.ray_cluster_spec).get("restartPolicy") or ""
    if policy not in ("", "Never"):
        return _INVALID + f"SidecarMode needs a head with restartPolicy Never, not {policy}"
    return ""


def _template(job: RayJob, _: JobKnobs) -> str:
    template = job.spec.submitter_pod_template
    if template is not None and not (template.get("spec") or {}).get("containers"):
        return _INVALID + "submitterPodTemplate needs at least one container, the submitter"
    return ""


def _cluster_spec(job: RayJob, _: JobKnobs) -> str:
    """Only what this controller reads itself; all else is said on the RayCluster that is made of it."""
    spec = job.spec.ray_cluster_spec
    if spec is None:
        return ""
    if spec.auth_options is not None and spec.auth_options.enable_k8s_token_auth:
        return _INVALID + "authOptions.enableK8sTokenAuth is not possible in the cluster of a RayJob"
    if not _head_pod(spec).get("containers"):
        return _INVALID + "headGroupSpec.template needs at least one container"
    return ""


def _runtime_env(job: RayJob, _: JobKnobs) -> str:
    try:
        runtime_env.parse(job.spec.runtime_env_yaml)
    except ValueError as error:
        return _INVALID + str(error)
    return ""


def _limits(job: RayJob, _: JobKnobs) -> str:
    spec = job.spec
    if spec.active_deadline_seconds is not None and spec.active_deadline_seconds <= 0:
        return _INVALID + "activeDeadlineSeconds must be a positive integer"
    if spec.pre_running_deadline_seconds is not None and spec.pre_running_deadline_seconds <= 0:
        return _INVALID + "preRunningDeadlineSeconds must be a positive integer"
    if spec.backoff_limit is not None and spec.backoff_limit < 0:
        return _INVALID + "backoffLimit must be a positive integer"
    return ""


def _ray_version(job: RayJob, _: JobKnobs) -> str:
    """KubeRay finds this out only when it builds the submitter, and then waits for ever (ADR 0065)."""
    spec = job.spec.ray_cluster_spec
    version = spec.ray_version if spec is not None else ""
    if not job.spec.metadata or not version or job.spec.submission_mode == SubmissionMode.HTTP:
        return ""
    match = _VERSION.match(version)
    if match is None:
        return _INVALID + f"metadata needs Ray 2.6.0 or later, and rayVersion {version!r} is not a version"
    if tuple(int(part or 0) for part in match.groups()) < _METADATA_SINCE:
        return _INVALID + f"metadata needs Ray 2.6.0 or later, but rayVersion is {version}"
    return ""


def _resources(job: RayJob, _: JobKnobs) -> str:
    """KubeRay finds this out only when it submits, and then tries again until a time-out (ADR 0065)."""
    if job.spec.submission_mode != SubmissionMode.HTTP or not job.spec.entrypoint_resources:
        return ""
    try:
        resources(job.spec)
    except ValueError as error:
        return _INVALID + str(error)
    return ""


_SPEC: tuple[Callable[[RayJob, JobKnobs], str], ...] = (
    _suspend,
    _ttl,
    _deletion,
    _cluster,
    _modes,
    _template,
    _cluster_spec,
    _runtime_env,
    _limits,
    _ray_version,
    _resources,
)


def resources(spec: RayJobSpec) -> dict[str, float]:
    """`entrypointResources` as resource name -> amount. Raises ValueError with a sentence for the user."""
    if not spec.entrypoint_resources:
        return {}
    try:
        value = json.loads(spec.entrypoint_resources)
    except ValueError as error:
        raise ValueError(f"entrypointResources is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("entrypointResources must be a JSON object of resource name and amount")
    for name, amount in value.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float):
            raise ValueError(f"entrypointResources: the amount of {name!r} must be a number")
    return value


def _head_pod(spec: RayClusterSpec | None) -> dict[str, Any]:
    return (spec.head_group_spec.template.get("spec") or {}) if spec is not None else {}
