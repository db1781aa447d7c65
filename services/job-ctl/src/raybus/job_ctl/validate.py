"""What is wrong with a RayJob: the contract's rules in the contract's order (rayjob §1.4), then what is not built.

The first problem wins. Nothing here depends on the time or on children.
"""

import json
import re
from typing import NamedTuple

from raybus.api.cel import text
from raybus.api.reasons import Reason
from raybus.api.rules import Cel, Chain, Found, NotInCel, Policy, Rule, first_problem
from raybus.api.v1 import JobDeploymentStatus, RayJob, RayJobSpec, SubmissionMode
from raybus.job_ctl import runtime_env
from raybus.job_ctl.asked import HEAD_POD, SPEC, VARIABLES, Asked, head_pod, spec_rule
from raybus.job_ctl.labels import CLUSTER, MAX_NAME
from raybus.job_ctl.settings import JobKnobs
from raybus.job_ctl.unsupported import TABLE
from raybus.job_ctl.validate_deletion import DELETION

_RFC1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_METADATA_SINCE = (2, 6, 0)
_INTERACTIVE = f"variables.mode == {text(SubmissionMode.INTERACTIVE)}"
_SIDECAR = f"variables.mode == {text(SubmissionMode.SIDECAR)}"
_TEMPLATE = f"{SPEC}.?submitterPodTemplate"


class Problem(NamedTuple):
    """`reason` of the Warning event, and the sentence that event and `status.message` carry."""

    reason: Reason
    text: str


def problem(job: RayJob, knobs: JobKnobs) -> Problem | None:
    """Why `job` is not carried out; None if all is well."""
    asked = Asked(job, knobs)
    found = ((reason, first_problem(chain, asked)) for reason, chain in CHAINS.items())
    return next((Problem(reason, sentence) for reason, sentence in found if sentence is not None), None)


# ------------------------------------------------------------------ metadata and status
def _long_name(asked: Asked) -> Found:
    name = asked.job.metadata.name
    return (name, str(len(name))) if len(name) > MAX_NAME else False


def _bad_name(asked: Asked) -> Found:
    name = asked.job.metadata.name
    return False if re.fullmatch(_RFC1035, name) else (name,)


def _waits(asked: Asked) -> bool:
    waiting = asked.job.status.job_deployment_status == JobDeploymentStatus.WAITING
    return waiting and asked.spec.submission_mode != SubmissionMode.INTERACTIVE


METADATA: Chain[Asked] = (
    Rule(
        f"RayJob name should be no more than {MAX_NAME} characters, but '{{}}' has {{}}",
        _long_name,
        Cel(f"size(object.metadata.name) > {MAX_NAME}", ("object.metadata.name", "string(size(object.metadata.name))")),
    ),
    Rule(
        "RayJob name '{}' must be an RFC-1035 label: lower-case letters, digits and '-', beginning with a letter and "
        "ending with a letter or digit",
        _bad_name,
        Cel(f"!object.metadata.name.matches({text(f'^{_RFC1035}$')})", ("object.metadata.name",)),
    ),
)

STATUS: Chain[Asked] = (
    Rule(
        "The RayJob status is invalid: jobDeploymentStatus Waiting is only possible in InteractiveMode",
        _waits,
        NotInCel("the status is not looked at"),
    ),
)


# ------------------------------------------------------------------ spec
def _retries(asked: Asked) -> bool:
    return (asked.spec.backoff_limit or 0) > 0


def _sidecar(asked: Asked) -> bool:
    return asked.spec.submission_mode == SubmissionMode.SIDECAR


def _restarting_head(asked: Asked) -> Found:
    policy = head_pod(asked.spec.ray_cluster_spec).get("restartPolicy") or ""
    return (policy,) if _sidecar(asked) and policy not in ("", "Never") else False


def _empty_template(asked: Asked) -> bool:
    template = asked.spec.submitter_pod_template
    return template is not None and not (template.get("spec") or {}).get("containers")


def _kubernetes_auth(asked: Asked) -> bool:
    spec = asked.spec.ray_cluster_spec
    return spec is not None and spec.auth_options is not None and bool(spec.auth_options.enable_k8s_token_auth)


def _empty_head(asked: Asked) -> bool:
    spec = asked.spec.ray_cluster_spec
    return spec is not None and not head_pod(spec).get("containers")


def _bad_runtime_env(asked: Asked) -> Found:
    try:
        runtime_env.parse(asked.spec.runtime_env_yaml)
    except ValueError as error:
        return (str(error),)
    return False


def _not_positive(value: int | None) -> bool:
    return value is not None and value <= 0


def _version_for_metadata(asked: Asked) -> str:
    """The version that has to know the metadata of jobs. KubeRay finds out only when it builds the submitter, and then
    waits for ever (ADR 0065)."""
    spec = asked.spec.ray_cluster_spec
    needed = asked.spec.metadata and asked.spec.submission_mode != SubmissionMode.HTTP
    return spec.ray_version if needed and spec is not None else ""


def _no_version(asked: Asked) -> Found:
    version = _version_for_metadata(asked)
    return (version,) if version and _VERSION.match(version) is None else False


def _old_version(asked: Asked) -> Found:
    version = _version_for_metadata(asked)
    match = _VERSION.match(version)
    if match is None or tuple(int(part or 0) for part in match.groups()) >= _METADATA_SINCE:
        return False
    return (version,)


def _bad_resources(asked: Asked) -> Found:
    """KubeRay finds this out only when it submits, and then tries again until a time-out (ADR 0065)."""
    if asked.spec.submission_mode != SubmissionMode.HTTP:
        return False
    try:
        resources(asked.spec)
    except ValueError as error:
        return (str(error),)
    return False


_HAS_METADATA = (
    f"size({SPEC}.?metadata.orValue({{}})) > 0 && variables.mode != {text(SubmissionMode.HTTP)}"
    " && variables.rayVersionText != ''"
)

FORM: Chain[Asked] = (
    spec_rule(
        "a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended",
        lambda asked: asked.spec.suspend and not asked.spec.shutdown_after_job_finishes,
        Cel(f"{SPEC}.?suspend.orValue(false) && !variables.shutdown"),
    ),
    spec_rule(
        "ttlSecondsAfterFinished must be 0 or more",
        lambda asked: asked.spec.ttl_seconds_after_finished < 0,
        Cel(f"{SPEC}.?ttlSecondsAfterFinished.orValue(0) < 0"),
    ),
    *DELETION,
    spec_rule(
        "suspend is not possible together with clusterSelector",
        lambda asked: asked.spec.suspend and bool(asked.spec.cluster_selector),
        Cel(f"{SPEC}.?suspend.orValue(false) && size(variables.selector) > 0"),
    ),
    spec_rule(
        "one of RayClusterSpec or ClusterSelector must be set",
        lambda asked: asked.spec.ray_cluster_spec is None and not asked.spec.cluster_selector,
        Cel(f"!{SPEC}.?rayClusterSpec.hasValue() && size(variables.selector) == 0"),
    ),
    spec_rule(
        f"clusterSelector needs the name of a RayCluster under key {CLUSTER}",
        lambda asked: bool(asked.spec.cluster_selector) and not asked.spec.cluster_selector.get(CLUSTER),
        Cel(f"size(variables.selector) > 0 && variables.selector[?{text(CLUSTER)}].orValue('') == ''"),
    ),
    spec_rule(
        "clusterSelector is not possible in SidecarMode",
        lambda asked: bool(asked.spec.cluster_selector) and _sidecar(asked),
        Cel(f"size(variables.selector) > 0 && {_SIDECAR}"),
    ),
    spec_rule(
        "backoffLimit above 0 is not possible together with clusterSelector",
        lambda asked: bool(asked.spec.cluster_selector) and _retries(asked),
        Cel("size(variables.selector) > 0 && variables.backoffLimit > 0"),
    ),
    spec_rule(
        "backoffLimit above 0 is not possible in InteractiveMode",
        lambda asked: asked.spec.submission_mode == SubmissionMode.INTERACTIVE and _retries(asked),
        Cel(f"{_INTERACTIVE} && variables.backoffLimit > 0"),
    ),
    spec_rule(
        "submitterPodTemplate is not possible in SidecarMode",
        lambda asked: _sidecar(asked) and asked.spec.submitter_pod_template is not None,
        Cel(f"{_SIDECAR} && {_TEMPLATE}.hasValue()"),
    ),
    spec_rule(
        "submitterConfig is not possible in SidecarMode",
        lambda asked: _sidecar(asked) and asked.spec.submitter_config is not None,
        Cel(f"{_SIDECAR} && {SPEC}.?submitterConfig.hasValue()"),
    ),
    spec_rule(
        "SidecarMode needs a head with restartPolicy Never, not {}",
        _restarting_head,
        Cel(
            f"{_SIDECAR} && !({HEAD_POD}.?restartPolicy.orValue('') in ['', 'Never'])",
            (f"{HEAD_POD}.?restartPolicy.orValue('')",),
        ),
    ),
    spec_rule(
        "submitterPodTemplate needs at least one container, the submitter",
        _empty_template,
        Cel(f"{_TEMPLATE}.hasValue() && size({_TEMPLATE}.?spec.?containers.orValue([])) == 0"),
    ),
    # Of the cluster only what this controller reads itself; all else is said on the RayCluster that is made of it.
    spec_rule(
        "authOptions.enableK8sTokenAuth is not possible in the cluster of a RayJob",
        _kubernetes_auth,
        Cel(f"{SPEC}.?rayClusterSpec.?authOptions.?enableK8sTokenAuth.orValue(false)"),
    ),
    spec_rule(
        "headGroupSpec.template needs at least one container",
        _empty_head,
        Cel(f"{SPEC}.?rayClusterSpec.hasValue() && size(variables.head) == 0"),
    ),
    spec_rule("{}", _bad_runtime_env, NotInCel("CEL reads no YAML"), "runtimeEnvYAML is no mapping"),
    spec_rule(
        "activeDeadlineSeconds must be a positive integer",
        lambda asked: _not_positive(asked.spec.active_deadline_seconds),
        Cel(f"{SPEC}.?activeDeadlineSeconds.orValue(1) <= 0"),
    ),
    spec_rule(
        "preRunningDeadlineSeconds must be a positive integer",
        lambda asked: _not_positive(asked.spec.pre_running_deadline_seconds),
        NotInCel("the CRD's minimum refuses it"),
    ),
    spec_rule(
        "backoffLimit must be a positive integer",
        lambda asked: (asked.spec.backoff_limit or 0) < 0,
        Cel("variables.backoffLimit < 0"),
    ),
    spec_rule(
        "metadata needs Ray 2.6.0 or later, and rayVersion '{}' is not a version",
        _no_version,
        Cel(f"{_HAS_METADATA} && size(variables.rayVersion) == 0", ("variables.rayVersionText",)),
    ),
    spec_rule(
        "metadata needs Ray 2.6.0 or later, but rayVersion is {}",
        _old_version,
        Cel(
            f"{_HAS_METADATA} && variables.rayVersion.exists(v, v[0] < 2 || (v[0] == 2 && v[1] < 6))",
            ("variables.rayVersionText",),
        ),
    ),
    spec_rule("{}", _bad_resources, NotInCel("CEL reads no JSON"), "entrypointResources is no JSON object of amounts"),
)

CHAINS: dict[Reason, Chain[Asked]] = {
    Reason.INVALID_RAY_JOB_METADATA: METADATA,
    Reason.INVALID_RAY_JOB_SPEC: FORM,
    Reason.INVALID_RAY_JOB_STATUS: STATUS,
    Reason.NOT_SUPPORTED: tuple(row.rule for row in TABLE),
}
"""Reason of the event -> rules, in their order."""

POLICY = Policy("RayJob", "rayjobs", VARIABLES, tuple(rule for chain in CHAINS.values() for rule in chain))
"""What the API server may refuse by itself."""


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
