"""The closed list of reasons, shared by conditions, events, metrics, spans and `raybus explain` (design §4).

Values that KubeRay's users and tools know keep their spelling (contract raycluster-reconcile, rayjob §2.9, §7.1).
"""

import re
from enum import StrEnum


class Reason(StrEnum):
    """Why something is as it is, or was done."""

    # Events about RayClusters.
    CREATED_HEAD_POD = "CreatedHeadPod"
    FAILED_TO_CREATE_HEAD_POD = "FailedToCreateHeadPod"
    CREATED_WORKER_POD = "CreatedWorkerPod"
    FAILED_TO_CREATE_WORKER_POD = "FailedToCreateWorkerPod"
    DELETED_HEAD_POD = "DeletedHeadPod"
    FAILED_TO_DELETE_HEAD_POD = "FailedToDeleteHeadPod"
    DELETED_WORKER_POD = "DeletedWorkerPod"
    FAILED_TO_DELETE_WORKER_POD = "FailedToDeleteWorkerPod"
    CREATED_SERVICE = "CreatedService"
    FAILED_TO_CREATE_SERVICE = "FailedToCreateService"
    UPDATED_SERVICE = "UpdatedService"
    FAILED_TO_UPDATE_SERVICE = "FailedToUpdateService"
    DELETED_POD = "DeletedPod"
    FAILED_TO_DELETE_POD_COLLECTION = "FailedToDeletePodCollection"
    CREATED_REDIS_CLEANUP_JOB = "CreatedRedisCleanupJob"
    FAILED_TO_CREATE_REDIS_CLEANUP_JOB = "FailedToCreateRedisCleanupJob"
    FORCE_DELETED_STUCK_CLUSTER = "ForceDeletedStuckCluster"
    CREATED_SERVICE_ACCOUNT = "CreatedServiceAccount"
    FAILED_TO_CREATE_SERVICE_ACCOUNT = "FailedToCreateServiceAccount"
    CREATED_ROLE = "CreatedRole"
    FAILED_TO_CREATE_ROLE = "FailedToCreateRole"
    CREATED_ROLE_BINDING = "CreatedRoleBinding"
    FAILED_TO_CREATE_ROLE_BINDING = "FailedToCreateRoleBinding"
    AUTOSCALER_SERVICE_ACCOUNT_NOT_FOUND = "AutoscalerServiceAccountNotFound"
    CREATED_INGRESS = "CreatedIngress"
    FAILED_TO_CREATE_INGRESS = "FailedToCreateIngress"
    UPDATED_INGRESS = "UpdatedIngress"
    FAILED_TO_UPDATE_INGRESS = "FailedToUpdateIngress"
    CREATED_ROUTE = "CreatedRoute"
    FAILED_TO_CREATE_ROUTE = "FailedToCreateRoute"
    CREATED_NETWORK_POLICY = "CreatedNetworkPolicy"
    FAILED_TO_CREATE_NETWORK_POLICY = "FailedToCreateNetworkPolicy"
    UPDATED_NETWORK_POLICY = "UpdatedNetworkPolicy"
    FAILED_TO_UPDATE_NETWORK_POLICY = "FailedToUpdateNetworkPolicy"
    DELETED_NETWORK_POLICY = "DeletedNetworkPolicy"
    FAILED_TO_DELETE_NETWORK_POLICY = "FailedToDeleteNetworkPolicy"
    NETWORK_POLICY_NAME_COLLISION = "NetworkPolicyNameCollision"
    MTLS_PKI_READY = "MTLSPKIReady"
    MTLS_CERTS_NOT_READY = "MTLSCertsNotReady"
    MTLS_CERTIFICATES_UPDATED = "MTLSCertificatesUpdated"
    MTLS_FAILED_TO_RECONCILE = "MTLSFailedToReconcile"
    MTLS_CERTIFICATE_EXPIRING_SOON = "MTLSCertificateExpiringSoon"
    CREATED_PVC = "CreatedPVC"
    FAILED_TO_CREATE_PVC = "FailedToCreatePVC"
    INVALID_RAY_CLUSTER_METADATA = "InvalidRayClusterMetadata"
    INVALID_RAY_CLUSTER_SPEC = "InvalidRayClusterSpec"
    INVALID_RAY_CLUSTER_STATUS = "InvalidRayClusterStatus"

    # Conditions of RayClusters.
    ALL_PODS_RUNNING_AND_READY_FIRST_TIME = "AllPodRunningAndReadyFirstTime"
    RAY_CLUSTER_PODS_PROVISIONING = "RayClusterPodsProvisioning"
    HEAD_POD_NOT_FOUND = "HeadPodNotFound"
    HEAD_POD_RUNNING_AND_READY = "HeadPodRunningAndReady"
    UNKNOWN = "Unknown"
    FAILED_DELETE_ALL_PODS = "FailedDeleteAllPods"
    FAILED_CREATE_HEAD_POD = "FailedCreateHeadPod"
    FAILED_CREATE_WORKER_POD = "FailedCreateWorkerPod"
    FAILED_DELETE_HEAD_POD = "FailedDeleteHeadPod"
    FAILED_DELETE_WORKER_POD = "FailedDeleteWorkerPod"

    # Events about RayJobs.
    INVALID_RAY_JOB_METADATA = "InvalidRayJobMetadata"
    INVALID_RAY_JOB_SPEC = "InvalidRayJobSpec"
    INVALID_RAY_JOB_STATUS = "InvalidRayJobStatus"
    CREATED_RAY_CLUSTER = "CreatedRayCluster"
    FAILED_TO_CREATE_RAY_CLUSTER = "FailedToCreateRayCluster"
    DELETED_RAY_CLUSTER = "DeletedRayCluster"
    FAILED_TO_DELETE_RAY_CLUSTER = "FailedToDeleteRayCluster"
    CREATED_RAY_JOB_SUBMITTER = "CreatedRayJobSubmitter"
    FAILED_TO_CREATE_RAY_JOB_SUBMITTER = "FailedToCreateRayJobSubmitter"
    DELETED_RAY_JOB_SUBMITTER = "DeletedRayJobSubmitter"
    FAILED_TO_DELETE_RAY_JOB_SUBMITTER = "FailedToDeleteRayJobSubmitter"

    # `status.reason` of RayJobs (contract rayjob §2.9).
    SUBMISSION_FAILED = "SubmissionFailed"
    APP_FAILED = "AppFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    PRE_RUNNING_DEADLINE_EXCEEDED = "PreRunningDeadlineExceeded"
    STATUS_CHECK_TIMEOUT_EXCEEDED = "JobStatusCheckTimeoutExceeded"
    TRANSITION_GRACE_PERIOD_EXCEEDED = "JobDeploymentStatusTransitionGracePeriodExceeded"
    VALIDATION_FAILED = "ValidationFailed"

    # What Raybus does not do (yet), said on the object.
    NOT_SUPPORTED = "NotSupported"

    # Why something waits: what `raybus explain` answers.
    IMAGE_PULL_FAILED = "ImagePullFailed"
    UNSCHEDULABLE = "Unschedulable"
    QUOTA_REFUSED = "QuotaRefused"
    FORBIDDEN = "Forbidden"
    NAME_TAKEN = "NameTaken"
    REFUSED_BY_API_SERVER = "RefusedByAPIServer"
    CONTAINER_FAILING = "ContainerFailing"
    HEAD_NOT_READY = "HeadNotReady"
    WORKERS_NOT_READY = "WorkersNotReady"
    SUBMITTER_FAILED = "SubmitterFailed"
    SUBMITTER_WAITING = "SubmitterWaiting"
    DASHBOARD_UNREACHABLE = "DashboardUnreachable"
    CLUSTER_NOT_READY = "ClusterNotReady"
    JOB_RUNNING = "JobRunning"
    WAITING_FOR_SUBMITTER = "WaitingForSubmitter"
    TTL_PENDING = "TTLPending"
    RETRYING = "Retrying"

    # Ordinary steps.
    STARTED = "Started"
    CLUSTER_READY = "ClusterReady"
    JOB_SUCCEEDED = "JobSucceeded"
    JOB_STOPPED = "JobStopped"
    JOB_FAILED = "JobFailed"
    DELETION_REQUESTED = "DeletionRequested"
    MANAGED_ELSEWHERE = "ManagedElsewhere"
    SUSPENSION_REQUESTED = "SuspensionRequested"
    SUSPENDED = "Suspended"
    RECREATING = "Recreating"
    CLEANING_UP = "CleaningUp"
    POD_LOST = "PodLost"
    BACKING_OFF = "BackingOff"
    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    POD_FAILED = "PodFailed"
    POD_REPLACED = "PodReplaced"

    @classmethod
    def _missing_(cls, value: object) -> "Reason | None":
        """The list is closed for whoever writes; a reader passes on what a later version calls a reason (ADR 0105)."""
        if not isinstance(value, str) or not re.fullmatch("[A-Z][A-Za-z0-9]{0,127}", value):
            return None
        later = str.__new__(cls, value)
        later._name_, later._value_ = value, value
        return later
