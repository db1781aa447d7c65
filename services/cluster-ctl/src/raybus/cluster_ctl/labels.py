"""The labels, annotations and fixed values by which the parts of a RayCluster find each other (contract objects §0.1).

Tools and Ray itself read them: they are spelled as KubeRay spells them.
"""

from __future__ import annotations

CLUSTER = "ray.io/cluster"
NODE_TYPE = "ray.io/node-type"
GROUP = "ray.io/group"
IS_RAY_NODE = "ray.io/is-ray-node"
IDENTIFIER = "ray.io/identifier"
SERVE = "ray.io/serve"
REPLICA_INDEX = "ray.io/worker-group-replica-index"
REPLICA_NAME = "ray.io/worker-group-replica-name"
HOST_INDEX = "ray.io/replica-host-index"
WORKER_SERVICE = "ray.io/headless-worker-svc"
ORIGIN_NAME = "ray.io/originated-from-cr-name"
ORIGIN_KIND = "ray.io/originated-from-crd"
SUBMISSION_MODE = "ray.io/job-submission-mode"
APP_NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
CREATED_BY = "app.kubernetes.io/created-by"

HEAD, WORKER, CLEANUP = "head", "worker", "redis-cleanup"
HEAD_GROUP = "headgroup"
APP, CREATOR = "kuberay", "kuberay-operator"

OVERWRITE_COMMAND = "ray.io/overwrite-container-cmd"
FT_ENABLED = "ray.io/ft-enabled"
EXTERNAL_STORAGE_NAMESPACE = "ray.io/external-storage-namespace"
FT_DELETION_TIMEOUT = "ray.io/gcs-ft-deletion-timeout"
REDIS_FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"
RECREATE_HASH = "ray.io/upgrade-strategy-recreate-hash"
OPERATOR_VERSION = "ray.io/kuberay-version"
GANG = "ray.io/gang-scheduling-enabled"
PRIORITY_CLASS = "ray.io/priority-class-name"
ENABLE_SERVE_SERVICE = "ray.io/enable-serve-service"
NO_HEAD_RESTART = "ray.io/disable-provisioned-head-restart"

OUR_MANAGER = "ray.io/kuberay-operator"
MAX_CLUSTER_NAME = 53


def is_true(value: str) -> bool:
    """Whether an annotation or parameter says `true`, in any case."""
    return value.lower() == "true"
