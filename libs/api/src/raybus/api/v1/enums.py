"""The closed sets of words in ray.io/v1, as constants. Fields stay plain strings: a word that is not known here must
still decode."""

from enum import StrEnum
from typing import Final

GROUP: Final = "ray.io"
VERSION: Final = "v1"
API_VERSION: Final = "ray.io/v1"

#: `status.jobDeploymentStatus` of a RayJob nobody has looked at yet, that is resumed, or that is about to be tried
#: again (contract rayjob §2.2).
NEW: Final = ""


class JobDeploymentStatus(StrEnum):
    """Where a RayJob stands (contract rayjob §2.2). The first state, `NEW`, is the empty string and no member: it is
    left out on the wire."""

    INITIALIZING = "Initializing"
    WAITING = "Waiting"
    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"
    VALIDATION_FAILED = "ValidationFailed"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RETRYING = "Retrying"


class JobStatus(StrEnum):
    """What Ray says of the submission (contract rayjob §1.3); the empty string means that Ray has not been heard
    yet."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class SubmissionMode(StrEnum):
    """How the entrypoint gets to Ray (contract rayjob §1.1). The schema has no enum: other words pass the API
    server."""

    K8S_JOB = "K8sJobMode"
    HTTP = "HTTPMode"
    INTERACTIVE = "InteractiveMode"
    SIDECAR = "SidecarMode"


class DeletionPolicyType(StrEnum):
    """What is deleted after a RayJob has ended (contract rayjob §1.2)."""

    CLUSTER = "DeleteCluster"
    WORKERS = "DeleteWorkers"
    SELF = "DeleteSelf"
    NONE = "DeleteNone"


class ClusterState(StrEnum):
    """`status.state` of a RayCluster (contract raycluster-reconcile §16); empty until it is ready for the first
    time."""

    READY = "ready"
    FAILED = "failed"
    SUSPENDED = "suspended"


class ClusterConditionType(StrEnum):
    """Condition types of a RayCluster, in the order of a fresh status (contract raycluster-reconcile §15)."""

    REPLICA_FAILURE = "ReplicaFailure"
    HEAD_POD_READY = "HeadPodReady"
    PROVISIONED = "RayClusterProvisioned"
    SUSPENDED = "RayClusterSuspended"
    SUSPENDING = "RayClusterSuspending"


class ConditionStatus(StrEnum):
    """The three values of a condition's `status`."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class UpgradeType(StrEnum):
    """`spec.upgradeStrategy.type` of a RayCluster."""

    RECREATE = "Recreate"
    NONE = "None"


class ServiceUpgradeType(StrEnum):
    """`spec.upgradeStrategy.type` of a RayService (contract rayservice §1.2). The schema has no enum."""

    NEW_CLUSTER = "NewCluster"
    INCREMENTAL = "NewClusterWithIncrementalUpgrade"
    NONE = "None"
