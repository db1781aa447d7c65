"""The kinds that Raybus reads or writes: where they live in the API and how they are called on the bus."""

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind of Kubernetes object.

    `kind` is its name here, with a suffix where several APIs use the same. `token` names it in VIEW subjects.
    `selectors` are the label selectors of its watches: () = not watched, ("",) = all of them (design §2: no
    cluster-wide list of Secrets, Services or PVCs). `gate`: the feature gate, or the choice of a batch scheduler,
    without which nobody makes such objects, "" = always.
    """

    kind: str
    group: str
    version: str
    plural: str
    token: str
    selectors: tuple[str, ...] = ()
    gate: str = ""

    @property
    def api_kind(self) -> str:
        """What objects of this kind bear in their `kind`: the name without the suffix that tells equal ones apart."""
        return self.kind.partition(".")[0]

    @property
    def api_version(self) -> str:
        """`group/version`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


_RAY_PODS = "ray.io/node-type in (head,worker,redis-cleanup)"
_OURS = "app.kubernetes.io/created-by=kuberay-operator"
_FROM_CR = "ray.io/originated-from-crd"
_WORKER_SERVICE = f"ray.io/headless-worker-svc,!ray.io/cluster,!{_FROM_CR}"
_OF_CLUSTER = ("ray.io/cluster",)

KINDS: tuple[Kind, ...] = (
    Kind("RayCluster", "ray.io", "v1", "rayclusters", "raycluster", ("",)),
    Kind("RayJob", "ray.io", "v1", "rayjobs", "rayjob", ("",)),
    Kind("RayService", "ray.io", "v1", "rayservices", "rayservice", ("",)),
    Kind("RayCronJob", "ray.io", "v1", "raycronjobs", "raycronjob", ("",)),
    # Submitter pods carry no node type, but the labels of their RayJob.
    Kind("Pod", "", "v1", "pods", "pod", (_RAY_PODS, f"{_FROM_CR}=RayJob,!ray.io/node-type")),
    # A RayCluster's services carry its name; a RayJob's or RayService's head service carries the owner's labels.
    Kind(
        "Service", "", "v1", "services", "service", ("ray.io/cluster", f"{_FROM_CR},!ray.io/cluster", _WORKER_SERVICE)
    ),
    Kind("Job", "batch", "v1", "jobs", "job", (_OURS,)),
    Kind("Secret", "", "v1", "secrets", "secret"),
    Kind("ConfigMap", "", "v1", "configmaps", "configmap"),
    Kind("ServiceAccount", "", "v1", "serviceaccounts", "serviceaccount", _OF_CLUSTER),
    Kind(
        "PersistentVolumeClaim",
        "",
        "v1",
        "persistentvolumeclaims",
        "pvc",
        _OF_CLUSTER,
        "GCSFaultToleranceEmbeddedStorage",
    ),
    Kind("Role", "rbac.authorization.k8s.io", "v1", "roles", "role", _OF_CLUSTER),
    Kind("RoleBinding", "rbac.authorization.k8s.io", "v1", "rolebindings", "rolebinding", _OF_CLUSTER),
    Kind("Ingress", "networking.k8s.io", "v1", "ingresses", "ingress", _OF_CLUSTER),
    Kind("Route", "route.openshift.io", "v1", "routes", "route"),
    Kind(
        "NetworkPolicy",
        "networking.k8s.io",
        "v1",
        "networkpolicies",
        "networkpolicy",
        _OF_CLUSTER,
        "RayClusterNetworkPolicy",
    ),
    Kind("Issuer", "cert-manager.io", "v1", "issuers", "issuer", _OF_CLUSTER, "RayClusterMTLS"),
    Kind("Certificate", "cert-manager.io", "v1", "certificates", "certificate", _OF_CLUSTER, "RayClusterMTLS"),
    # Three APIs have a kind of this name; Volcano's carries no label of ours, so all of them are watched.
    Kind(
        *("PodGroup.volcano", "scheduling.volcano.sh", "v1beta1", "podgroups", "podgroup-volcano"),
        selectors=("",),
        gate="batch-scheduler=volcano",
    ),
    Kind(
        *("PodGroup.scheduler-plugins", "scheduling.x-k8s.io", "v1alpha1", "podgroups", "podgroup-plugins"),
        selectors=_OF_CLUSTER,
        gate="batch-scheduler=scheduler-plugins",
    ),
    Kind("PodGroup", "scheduling.k8s.io", "v1alpha2", "podgroups", "podgroup", _OF_CLUSTER, "KubernetesWAS"),
    Kind("Workload", "scheduling.k8s.io", "v1alpha2", "workloads", "workload", _OF_CLUSTER, "KubernetesWAS"),
    Kind("Event", "events.k8s.io", "v1", "events", "event"),
)

BY_KIND = {kind.kind: kind for kind in KINDS}
BY_TOKEN = {kind.token: kind for kind in KINDS}

ROOTS = {"cluster": "RayCluster", "job": "RayJob", "cron": "RayCronJob", "serve": "RayService"}
"""Controller -> the kind of its roots."""
