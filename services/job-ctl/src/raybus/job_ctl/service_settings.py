"""Settings of the job-ctl process, under KubeRay's names where it has one (contract platform §3, rayjob §0)."""

from dataclasses import dataclass
from typing import Literal

from raybus.job_ctl.settings import SUBMITTER_IMAGE, JobKnobs
from raybus.runtime.common import CommonSettings
from raybus.runtime.gates import read_gates
from raybus.runtime.settings import setting


@dataclass(frozen=True, kw_only=True)
class JobSettings(CommonSettings):
    """What changes how RayJobs run."""

    cluster_domain: str = setting("cluster.local", "DNS domain of Services.", env=("CLUSTER_DOMAIN",))
    transition_grace_seconds: int = setting(
        300,
        "Seconds from Ray's end time until a job whose submitter never finishes ends all the same.",
        env=("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",),
    )
    status_check_timeout_seconds: int = setting(
        300,
        "Seconds without an answer of the dashboard until a job fails; 300 in the place of zero and less.",
        env=("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS",),
    )
    delete_rayjob_cr_after_job_finishes: bool = setting(
        False,
        "shutdownAfterJobFinishes deletes the RayJob itself and not only its cluster.",
        env=("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES",),
        keys=("deleteRayJobAfterJobFinishes",),
    )
    enable_login_shell: bool = setting(False, "The submit script runs in a login shell.", env=("ENABLE_LOGIN_SHELL",))
    enable_ray_head_cluster_ip_service: bool = setting(
        False, "Head Services get an address instead of being headless.", env=("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE",)
    )
    submitter: Literal["raybus", "ray"] = setting(
        "raybus", "Who submits in K8sJobMode without a template: Raybus's small image, or the head's with `ray`."
    )
    submitter_image: str = setting(SUBMITTER_IMAGE, "The small submitter's image.")


def knobs(settings: JobSettings) -> JobKnobs:
    """What decisions need of the settings. Raises SettingsError for feature gates that cannot be honoured."""
    gates, limit = read_gates(settings.feature_gates), settings.status_check_timeout_seconds
    return JobKnobs(
        transition_grace=settings.transition_grace_seconds,
        status_check_timeout=limit if limit > 0 else JobKnobs.status_check_timeout,
        delete_rayjob=settings.delete_rayjob_cr_after_job_finishes,
        login_shell=settings.enable_login_shell,
        cluster_domain=settings.cluster_domain,
        head_cluster_ip=settings.enable_ray_head_cluster_ip_service,
        deletion_policy=gates["RayJobDeletionPolicy"],
        submitter=settings.submitter,
        submitter_image=settings.submitter_image,
    )
