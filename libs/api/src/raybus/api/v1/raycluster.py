"""RayCluster: a head, groups of workers, and what is known of them (contract raycluster-objects §1)."""

from typing import Annotated

from msgspec import Struct, field

from raybus.api.v1._doc import Int32, Int64, Quantity, RawObject, Time, doc, list_map, rules
from raybus.api.v1.cluster_options import (
    AuthOptions,
    AutoscalerOptions,
    GcsFaultToleranceOptions,
    HistoryServerOptions,
    NetworkPolicyConfig,
    RayClusterUpgradeStrategy,
    TLSOptions,
)
from raybus.api.v1.meta import Condition, ObjectMeta

MANAGED_BY_RULES = rules(
    ("self == oldSelf", "managedBy cannot be changed once it is set"),
    (
        "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",
        "managedBy must be 'ray.io/kuberay-operator' or 'kueue.x-k8s.io/multikueue'",
    ),
)
MANAGED_BY_TEXT = (
    "Who takes care of this object. Unset or `ray.io/kuberay-operator`: this control plane."
    " `kueue.x-k8s.io/multikueue`: Kueue on another cluster; the object is left alone here. Cannot be changed once it"
    " is set."
)
API_VERSION_TEXT = "Group and version of this object's schema: `ray.io/v1`."
METADATA_TEXT = "Standard Kubernetes object metadata."

_START_PARAMS = (
    'Flags of `ray start` as name and value, without the leading dashes (`num-cpus: "4"`). They win over what is'
    " derived from the template."
)
_RESOURCES = (
    "What this node offers to Ray's scheduler, as resource name and quantity. Wins over `rayStartParams` and the"
    " container's limits; leaves the container's own resources alone."
)
_LABELS = "Labels put on the pods and, through `ray start --labels`, on the Ray nodes."


class IngressOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The Ingress in front of the head's dashboard."""

    host: Annotated[str | None, doc("Host name of the rule. Unset: any host.")] = None
    path: Annotated[str | None, doc("Path of the rule. Unset: `/`.")] = None
    path_type: Annotated[
        str | None,
        doc(
            "How `path` is compared with a request's. Unset: `Prefix`.",
            enum=["Exact", "Prefix", "ImplementationSpecific"],
        ),
    ] = None
    tls: Annotated[
        tuple[RawObject, ...],
        doc("Certificates by host name, copied to the Ingress.", core="networking.v1.IngressTLS"),
    ] = ()


class HeadGroupSpec(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The head of the cluster: one pod and its Service."""

    template: Annotated[
        RawObject,
        doc(
            "Template of the head pod. The first container is the Ray container. Of the metadata only name, namespace,"
            " labels, annotations and finalizers are kept. `kubectl explain pod` tells the fields.",
            required=True,
            core="core.v1.PodTemplateSpec",
        ),
    ] = field(default_factory=dict)
    ray_start_params: Annotated[dict[str, str], doc(_START_PARAMS)] = field(default_factory=dict)
    resources: Annotated[dict[str, str], doc(_RESOURCES)] = field(default_factory=dict)
    labels: Annotated[dict[str, str], doc(_LABELS)] = field(default_factory=dict)
    service_type: Annotated[
        str, doc("Type of the head Service: `ClusterIP`, `NodePort` or `LoadBalancer`. Empty: a headless Service.")
    ] = ""
    head_service: Annotated[
        RawObject | None,
        doc(
            "A Service to start from instead of the default head Service; Ray's ports and selector are added.",
            core="core.v1.Service",
        ),
    ] = None
    enable_ingress: Annotated[
        bool | None, doc("True: an Ingress (on OpenShift a Route) is made for the dashboard.")
    ] = None
    ingress_options: Annotated[IngressOptions | None, doc("Host, path and certificates of that Ingress.")] = None


class ScaleStrategy(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """What the Ray autoscaler asks to be removed."""

    workers_to_delete: Annotated[
        tuple[str, ...], doc("Names of worker pods that go first; written by the Ray autoscaler.")
    ] = ()


class WorkerGroupSpec(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Workers of one shape. The number of pods is `replicas`, kept within its bounds, times `numOfHosts`."""

    group_name: Annotated[
        str, doc("Name of the group, unique in the cluster; part of the pods' names and labels.", required=True)
    ] = ""
    template: Annotated[
        RawObject,
        doc(
            "Template of the group's pods. The first container is the Ray container. Of the metadata only name,"
            " namespace, labels, annotations and finalizers are kept. `kubectl explain pod` tells the fields.",
            required=True,
            core="core.v1.PodTemplateSpec",
        ),
    ] = field(default_factory=dict)
    replicas: Annotated[
        Int32 | None, doc("Wanted number of replicas; kept within `minReplicas` and `maxReplicas`.", default=0)
    ] = None
    min_replicas: Annotated[Int32 | None, doc("Least number of replicas.", required=True, default=0)] = None
    max_replicas: Annotated[Int32 | None, doc("Greatest number of replicas.", required=True, default=2147483647)] = None
    num_of_hosts: Annotated[
        Int32, doc("Pods per replica; more than 1 for accelerators that span hosts.", default=1)
    ] = 0
    idle_timeout_seconds: Annotated[
        Int32 | None, doc("Seconds without work after which the autoscaler (v2 only) removes a worker of this group.")
    ] = None
    priority: Annotated[
        Int32 | None,
        doc("The autoscaler (v2, Ray 2.56 or later) grows groups with a higher number first.", default=0),
    ] = None
    ray_start_params: Annotated[dict[str, str], doc(_START_PARAMS)] = field(default_factory=dict)
    resources: Annotated[dict[str, str], doc(_RESOURCES)] = field(default_factory=dict)
    labels: Annotated[dict[str, str], doc(_LABELS)] = field(default_factory=dict)
    scale_strategy: Annotated[ScaleStrategy, doc("Which pods go first when the group shrinks.")] = ScaleStrategy()
    suspend: Annotated[
        bool | None,
        doc("True: the group has no pods. Set by a RayJob's deletion policy; not allowed together with autoscaling."),
    ] = None


class RayClusterSpec(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The wanted cluster."""

    head_group_spec: Annotated[HeadGroupSpec, doc("The head: its pod, Service and Ingress.", required=True)] = (
        HeadGroupSpec()
    )
    worker_group_specs: Annotated[
        tuple[WorkerGroupSpec, ...], doc("The groups of workers. Empty: a cluster of the head alone.")
    ] = ()
    ray_version: Annotated[
        str,
        doc(
            "Ray version inside the images, such as `2.52.0`. Decides which features are used; the images themselves"
            " are not looked at."
        ),
    ] = ""
    enable_in_tree_autoscaling: Annotated[
        bool | None, doc("True: the Ray autoscaler runs beside the head and sets the groups' `replicas`. Unset: off.")
    ] = None
    autoscaler_options: Annotated[
        AutoscalerOptions | None, doc("Overrides of the autoscaler's container and behaviour.")
    ] = None
    head_service_annotations: Annotated[dict[str, str], doc("Annotations of the head Service.")] = field(
        default_factory=dict
    )
    upgrade_strategy: Annotated[
        RayClusterUpgradeStrategy | None,
        doc(
            "What happens to running pods when the spec changes. Not allowed in the cluster of a RayJob or RayService."
        ),
    ] = None
    suspend: Annotated[
        bool | None,
        doc("True: all pods are deleted; Services and other children stay. False or unset: the cluster runs."),
    ] = None
    managed_by: Annotated[str | None, doc(MANAGED_BY_TEXT, **MANAGED_BY_RULES)] = None
    auth_options: Annotated[AuthOptions | None, doc("Token authentication. Unset: none.")] = None
    gcs_fault_tolerance_options: Annotated[
        GcsFaultToleranceOptions | None,
        doc(
            "Where the head keeps its state, so that it survives the head pod. Present, even if empty, means fault"
            " tolerance is on."
        ),
    ] = None
    history_server_options: Annotated[HistoryServerOptions | None, doc("What is kept for the Ray history server.")] = (
        None
    )
    network_policy: Annotated[
        NetworkPolicyConfig | None, doc("Network isolation of the cluster's pods. Unset: none.")
    ] = None
    tls_options: Annotated[TLSOptions | None, doc("Mutual TLS between the Ray nodes. Unset: off.")] = None


class HeadInfo(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """How to reach the head."""

    pod_name: Annotated[str, doc("Name of the head pod; empty while there is none.")] = ""
    pod_ip: Annotated[str, doc("IP address of the head pod; empty while it has none.")] = field(
        default="", name="podIP"
    )
    service_name: Annotated[str, doc("Name of the head Service.")] = ""
    service_ip: Annotated[
        str, doc("Cluster IP of the head Service; for a headless one the address of the head pod.")
    ] = field(default="", name="serviceIP")


def _zero() -> str:
    return "0"


class RayClusterStatus(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The observed cluster. `desired*` quantities and `head` are always written, also when they are zero or empty
    (contract
    raycluster-objects §1.8)."""

    state: Annotated[
        str,
        doc(
            "`ready` once all pods have been running and ready together (it stays so when pods fail later),"
            " `suspended`, or empty."
        ),
    ] = ""
    reason: Annotated[str, doc("Why the cluster is in this state; emptied when it becomes ready.")] = ""
    desired_worker_replicas: Annotated[Int32, doc("Number of worker pods that the spec asks for, over all groups.")] = 0
    available_worker_replicas: Annotated[Int32, doc("Number of worker pods in phase Running.")] = 0
    ready_worker_replicas: Annotated[Int32, doc("Number of worker pods that are Running and Ready.")] = 0
    min_worker_replicas: Annotated[
        Int32, doc("Least number of worker pods, over all groups that are not suspended.")
    ] = 0
    max_worker_replicas: Annotated[
        Int32, doc("Greatest number of worker pods, over all groups that are not suspended; ends at 2147483647.")
    ] = 0
    desired_cpu: Annotated[
        Quantity,
        doc(
            "CPUs that head and workers request together, in cores; a container's limit counts where it requests none."
        ),
    ] = field(default_factory=_zero, name="desiredCPU")
    desired_memory: Annotated[
        Quantity,
        doc("Memory that head and workers request together, in bytes; a limit counts where there is no request."),
    ] = field(default_factory=_zero)
    desired_gpu: Annotated[
        Quantity, doc("Devices whose resource name ends in `gpu`, and MIG slices, that are requested together.")
    ] = field(default_factory=_zero, name="desiredGPU")
    desired_tpu: Annotated[Quantity, doc("Devices `google.com/tpu` that are requested together.")] = field(
        default_factory=_zero, name="desiredTPU"
    )
    endpoints: Annotated[
        dict[str, str],
        doc('Ports of the head Service by name, such as `dashboard: "8265"`; node ports where it has them.'),
    ] = field(default_factory=dict)
    head: Annotated[HeadInfo, doc("How to reach the head.")] = field(default_factory=HeadInfo)
    conditions: Annotated[
        tuple[Condition, ...],
        doc(
            "Aspects of the cluster's state: HeadPodReady, RayClusterProvisioned, RayClusterSuspended,"
            " RayClusterSuspending, ReplicaFailure.",
            **list_map("type"),
        ),
    ] = ()
    last_update_time: Annotated[
        Time | None, doc("When this status was last computed and written. RFC 3339, UTC.", nullable=True)
    ] = None
    state_transition_times: Annotated[
        dict[str, Time], doc("When each value of `state` was last entered. RFC 3339, UTC.")
    ] = field(default_factory=dict)
    observed_generation: Annotated[Int64, doc("`metadata.generation` of the spec that this status describes.")] = 0


class RayCluster(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """A Ray cluster on Kubernetes: one head pod, groups of worker pods, and the Services in front of them."""

    api_version: Annotated[str, doc(API_VERSION_TEXT)] = field(default_factory=lambda: "ray.io/v1")
    kind: Annotated[str, doc("`RayCluster`.")] = field(default_factory=lambda: "RayCluster")
    metadata: Annotated[ObjectMeta, doc(METADATA_TEXT)] = field(default_factory=ObjectMeta)
    spec: Annotated[RayClusterSpec, doc("The wanted cluster.")] = field(default_factory=RayClusterSpec)
    status: Annotated[RayClusterStatus, doc("The observed cluster, written by the control plane.")] = field(
        default_factory=RayClusterStatus
    )
