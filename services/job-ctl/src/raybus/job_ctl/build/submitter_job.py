"""The Kubernetes Job that submits in K8sJobMode (contract rayjob §3.1, ADR 0064)."""

import copy

from raybus.api.decision import Json
from raybus.api.v1 import RayJobSpec
from raybus.job_ctl import runtime_env
from raybus.job_ctl.build.common import owner
from raybus.job_ctl.build.submit_script import submit_script
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.labels import CREATED_BY, CREATOR, SUBMITTER_CONTAINER, origin
from raybus.job_ctl.settings import JobKnobs

_DEFAULT_BACKOFF = 2


def submitter_job(view: JobView, dashboard: str, job_id: str, knobs: JobKnobs) -> Json:
    """The whole Job. `dashboard`: host and port of the cluster's dashboard; `job_id`: the submission id."""
    spec = view.job.spec
    labels = {**origin(view.name), CREATED_BY: CREATOR}
    config = spec.submitter_config
    backoff = config.backoff_limit if config is not None else None
    template = _template(spec, dashboard, job_id, knobs)
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": view.name,
            "namespace": view.namespace,
            "labels": labels,
            "ownerReferences": owner(view),
        },
        "spec": {"backoffLimit": _DEFAULT_BACKOFF if backoff is None else backoff, "template": template},
    }


def _template(spec: RayJobSpec, dashboard: str, job_id: str, knobs: JobKnobs) -> Json:
    """The user's template with its first container made the submitter, or the small default."""
    if spec.submitter_pod_template is not None:
        template = copy.deepcopy(spec.submitter_pod_template)
    else:
        template = {"spec": {"containers": [_default_container(spec, knobs)], "restartPolicy": "Never"}}
    container = template["spec"]["containers"][0]
    if not container.get("command"):
        container["command"] = ["/bin/bash", "-cel" if knobs.login_shell else "-ce", "--"]
        container["args"] = [submit_script(spec, dashboard, job_id)]
    container["env"] = [
        *(container.get("env") or []),
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        {"name": "RAY_DASHBOARD_ADDRESS", "value": dashboard},
        {"name": "RAY_JOB_SUBMISSION_ID", "value": job_id},
    ]
    return template


def _default_container(spec: RayJobSpec, knobs: JobKnobs) -> Json:
    """Name and resources are KubeRay's, in every mode: Kueue counts them (contract rayjob §7.5)."""
    container: Json = {
        "name": SUBMITTER_CONTAINER,
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}},
    }
    env = runtime_env.parse(spec.runtime_env_yaml)
    if knobs.submitter == "ray" or runtime_env.needs_local_files(env):
        container["image"] = _head_image(spec)
        return container
    container["image"] = knobs.submitter_image
    container["command"] = ["/submitter"]
    container["args"] = _arguments(spec)
    return container


def _head_image(spec: RayJobSpec) -> str:
    assert spec.ray_cluster_spec is not None, "validated"
    image: str = spec.ray_cluster_spec.head_group_spec.template["spec"]["containers"][0].get("image", "")
    return image


def _arguments(spec: RayJobSpec) -> list[str]:
    """Flags of the small submitter; the entrypoint goes to Ray as one word, no shell of the submitter reads it."""
    env = runtime_env.parse(spec.runtime_env_yaml)
    flags = [
        ("--runtime-env-json", runtime_env.compact_json(env) if env else ""),
        ("--metadata-json", runtime_env.compact_json(spec.metadata) if spec.metadata else ""),
        ("--entrypoint-resources", spec.entrypoint_resources),
        ("--entrypoint-num-cpus", f"{spec.entrypoint_num_cpus:g}" if spec.entrypoint_num_cpus > 0 else ""),
        ("--entrypoint-num-gpus", f"{spec.entrypoint_num_gpus:g}" if spec.entrypoint_num_gpus > 0 else ""),
    ]
    given = [word for name, value in flags if value for word in (name, value)]
    # Kubernetes reads `$$` in arguments as `$` and replaces `$(NAME)`; the job's dollars are not for it (ADR 0029).
    return [word.replace("$", "$$") for word in (*given, "--", spec.entrypoint.strip())]
