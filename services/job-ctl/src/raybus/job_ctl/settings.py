"""What the operator's settings say to a decision about a RayJob (contract rayjob §0)."""

from dataclasses import dataclass
from typing import Literal

SUBMITTER_IMAGE = "docker.io/raybus/submitter:0.1.0"


@dataclass(frozen=True, kw_only=True)
class JobKnobs:
    """Everything that changes decisions about all RayJobs; the defaults are KubeRay's, but for the submitter.

    `transition_grace`: seconds from Ray's end time until a job whose submitter never finishes ends all the same.
    `status_check_timeout`: seconds without an answer of the dashboard until a job fails. `delete_rayjob`: clean-up
    deletes the RayJob itself and not only its cluster. `login_shell`: KubeRay's submit script runs in a login shell.
    `cluster_domain`: DNS domain of Services. `head_cluster_ip`: head Services get an address instead of being
    headless. `deletion_policy`: feature gate RayJobDeletionPolicy. `submitter`: who submits in K8sJobMode where the
    user gives no template: `raybus` = the small image `submitter_image`, `ray` = the head's image with Ray's own
    command line (ADR 0064).
    """

    transition_grace: int = 300
    status_check_timeout: int = 300
    delete_rayjob: bool = False
    login_shell: bool = False
    cluster_domain: str = "cluster.local"
    head_cluster_ip: bool = False
    deletion_policy: bool = True
    submitter: Literal["raybus", "ray"] = "raybus"
    submitter_image: str = SUBMITTER_IMAGE
