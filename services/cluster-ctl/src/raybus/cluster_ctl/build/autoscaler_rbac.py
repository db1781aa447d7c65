"""ServiceAccount, Role and RoleBinding of the Ray autoscaler (contract objects §5.1)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.ownership import child_metadata

_RBAC = "rbac.authorization.k8s.io"
_RULES: list[Json] = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
    {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "patch"]},
]


def own_account(cluster: RayCluster) -> str:
    """The ServiceAccount that the head's template names, "" without one."""
    name: str = (cluster.spec.head_group_spec.template.get("spec") or {}).get("serviceAccountName") or ""
    return name


def account_of_head(cluster: RayCluster) -> str:
    """What the head pod of an autoscaling cluster runs as (contract objects §2.11): the account that the user names, by
    the name that he gives it (ADR 0111), or our own."""
    return own_account(cluster) or names.short_name(cluster.metadata.name)


def service_account(cluster: RayCluster) -> Json:
    """The account that is made when the user names none."""
    metadata = _metadata(cluster)
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def role(cluster: RayCluster) -> Json:
    """What the autoscaler may do in the cluster's namespace."""
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": _metadata(cluster), "rules": _RULES}


def role_binding(cluster: RayCluster) -> Json:
    """Who may do it: the head's account, also when it is the user's."""
    metadata = _metadata(cluster)
    account = {"kind": "ServiceAccount", "name": account_of_head(cluster), "namespace": cluster.metadata.namespace}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "subjects": [account],
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": metadata["name"]},
    }


def _metadata(cluster: RayCluster) -> Json:
    name = names.short_name(cluster.metadata.name)
    return child_metadata(cluster, name, {labels.APP_NAME: labels.APP, labels.CREATED_BY: labels.CREATOR})
