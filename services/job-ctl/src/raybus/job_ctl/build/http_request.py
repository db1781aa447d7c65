"""The body of Ray's submit call in HTTPMode (contract rayjob §5.3): empty and zero values are left out."""

from raybus.api.decision import Json
from raybus.api.v1 import RayJobSpec
from raybus.job_ctl import runtime_env
from raybus.job_ctl.validate import resources


def submit_request(spec: RayJobSpec, job_id: str) -> Json:
    """The entrypoint goes as it stands, untrimmed. `spec` has been validated."""
    optional = {
        "runtime_env": runtime_env.parse(spec.runtime_env_yaml),
        "metadata": spec.metadata,
        "entrypoint_num_cpus": _number(spec.entrypoint_num_cpus),
        "entrypoint_num_gpus": _number(spec.entrypoint_num_gpus),
        "entrypoint_resources": resources(spec),
    }
    given = {key: value for key, value in optional.items() if value}
    return {"entrypoint": spec.entrypoint, "submission_id": job_id, **given}


def _number(value: float) -> float | int:
    """A whole number without a fraction, as KubeRay sends it."""
    return int(value) if value.is_integer() else value
