"""The optional parts of a RayCluster's spec: autoscaler, authentication, GCS fault tolerance, network policy, TLS,
history (contract
raycluster-objects §1.4-1.7)."""

from typing import Annotated

from msgspec import Struct, field

from raybus.api.v1._doc import Int32, Quantity, RawObject, doc, list_map, rules


class AutoscalerOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Overrides of the Ray autoscaler's sidecar in the head pod."""

    version: Annotated[
        str | None,
        doc(
            "Generation of the Ray autoscaler, `v1` or `v2`. Unset: the Ray version of the cluster decides.",
            enum=["v1", "v2"],
        ),
    ] = None
    image: Annotated[
        str | None, doc("Image of the autoscaler container. Unset: the image of the head's Ray container.")
    ] = None
    image_pull_policy: Annotated[
        str | None,
        doc("When the kubelet pulls that image: `Always`, `IfNotPresent` or `Never`. Unset: `IfNotPresent`."),
    ] = None
    resources: Annotated[
        RawObject | None,
        doc(
            "Requests and limits of the autoscaler container; replaces the default of 500m CPU and 512Mi memory as a"
            " whole.",
            core="core.v1.ResourceRequirements",
        ),
    ] = None
    security_context: Annotated[
        RawObject | None,
        doc("Security settings of the autoscaler container. Unset: none.", core="core.v1.SecurityContext"),
    ] = None
    env: Annotated[
        tuple[RawObject, ...], doc("Environment variables appended to the autoscaler container.", core="core.v1.EnvVar")
    ] = ()
    env_from: Annotated[
        tuple[RawObject, ...],
        doc(
            "Config maps and Secrets whose keys become environment variables of the autoscaler.",
            core="core.v1.EnvFromSource",
        ),
    ] = ()
    volume_mounts: Annotated[
        tuple[RawObject, ...],
        doc("Volumes of the head pod mounted into the autoscaler container.", core="core.v1.VolumeMount"),
    ] = ()
    command: Annotated[
        tuple[str, ...], doc("Replaces the command of the autoscaler container when it is not empty.")
    ] = ()
    args: Annotated[
        tuple[str, ...], doc("Replaces the arguments of the autoscaler container when it is not empty.")
    ] = ()
    idle_timeout_seconds: Annotated[
        Int32 | None, doc("Seconds a worker stays without work before the autoscaler removes it. Unset: Ray uses 60.")
    ] = None
    upscaling_mode: Annotated[
        str | None,
        doc(
            "How eagerly Ray adds workers. `Conservative`: pending workers are limited to the size of the cluster;"
            " `Default` and `Aggressive`: not limited.",
            enum=["Default", "Aggressive", "Conservative"],
        ),
    ] = None


class AuthOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Token authentication of the Ray cluster."""

    mode: Annotated[
        str,
        doc(
            "`token`: callers must present the cluster's token. `disabled` or unset: no check.",
            enum=["disabled", "token"],
        ),
    ] = ""
    secret_name: Annotated[
        str | None,
        doc(
            "Secret of this namespace with the token under key `auth_token`. Unset: one is generated under the"
            " cluster's name."
        ),
    ] = None
    enable_k8s_token_auth: Annotated[
        bool | None,
        doc(
            "Let the Kubernetes API server check the tokens. For a RayCluster of its own only, not for those of a"
            " RayJob or RayService."
        ),
    ] = field(default=None, name="enableK8sTokenAuth")


class RedisCredential(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """A user name or password for Redis, given in place or by reference."""

    value: Annotated[str, doc("The credential itself, readable by everyone who can read this object.")] = ""
    value_from: Annotated[
        RawObject | None, doc("Where to read the credential, usually a key of a Secret.", core="core.v1.EnvVarSource")
    ] = None


class GcsEmbeddedStorage(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The volume on which the head keeps its state with backend `rocksdb`."""

    claim_name: Annotated[
        str,
        doc(
            "PersistentVolumeClaim of this namespace to use. Empty: one is made for the cluster, called"
            " `<cluster>-gcs-pvc`."
        ),
    ] = ""
    size: Annotated[Quantity | None, doc("Size requested for a volume made for the cluster, in bytes. Unset: 1Gi.")] = (
        None
    )
    storage_class_name: Annotated[
        str | None, doc("Storage class of a volume made for the cluster. Unset: the default class of Kubernetes.")
    ] = None
    access_modes: Annotated[
        tuple[str, ...], doc("Access modes of a volume made for the cluster. Empty: `ReadWriteOnce`.")
    ] = ()
    sub_path: Annotated[str, doc("Folder inside the volume that holds the data. Empty: its root.")] = ""
    deletion_policy: Annotated[
        str | None,
        doc(
            "What becomes of a volume made for the cluster when the cluster is deleted. Unset: `DeleteWithCluster`.",
            enum=["DeleteWithCluster", "Retain"],
        ),
    ] = None


class GcsFaultToleranceOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Where the head's global control store (GCS) keeps its state, so that a new head finds it again."""

    backend: Annotated[
        str,
        doc(
            "Kind of store: an external `redis`, or `rocksdb` on a volume of the head. Empty: `redis`. Cannot be"
            " changed once it is set.",
            enum=["redis", "rocksdb"],
            **rules(("self == oldSelf", "gcsFaultToleranceOptions.backend cannot be changed once it is set")),
        ),
    ] = ""
    redis_address: Annotated[
        str, doc("Address of Redis as `host:port`, with `rediss://` in front for TLS. For backend `redis`.")
    ] = ""
    redis_username: Annotated[RedisCredential | None, doc("User name for Redis. For backend `redis`.")] = None
    redis_password: Annotated[RedisCredential | None, doc("Password for Redis. For backend `redis`.")] = None
    external_storage_namespace: Annotated[
        str,
        doc("Prefix that keeps clusters apart in one Redis. Empty: the UID of the RayCluster. For backend `redis`."),
    ] = ""
    storage: Annotated[GcsEmbeddedStorage | None, doc("The head's volume. For backend `rocksdb`.")] = None


class CollectorOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The sidecar that copies logs and events of each Ray node to the history server's store."""

    image: Annotated[
        str | None, doc("Image of the collector container. A cluster that asks for a collector without one is refused.")
    ] = None
    image_pull_policy: Annotated[
        str | None,
        doc("When the kubelet pulls that image: `Always`, `IfNotPresent` or `Never`. Unset: `IfNotPresent`."),
    ] = None
    resources: Annotated[
        RawObject | None,
        doc(
            "Requests and limits of the collector container. Unset: requests of 50m CPU and 64Mi, limits of 200m CPU"
            " and 256Mi.",
            core="core.v1.ResourceRequirements",
        ),
    ] = None
    env: Annotated[
        tuple[RawObject, ...],
        doc("Environment of the collector container; must hold the settings of its store.", core="core.v1.EnvVar"),
    ] = ()


class HistoryServerOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """What the cluster leaves behind for the Ray history server. Needs feature gate `RayClusterHistoryServer`."""

    collector_options: Annotated[
        CollectorOptions | None, doc("The collector sidecar of every Ray pod. Unset: no sidecar.")
    ] = None


_INGRESS = "Traffic let in besides that of the cluster itself, as rules of a Kubernetes NetworkPolicy."
_EGRESS = "Traffic let out besides that to the cluster itself; DNS and the API server need rules of their own."


class NetworkPolicyRules(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Exceptions from the cluster's network policy for the head or for all workers."""

    ingress_rules: Annotated[tuple[RawObject, ...], doc(_INGRESS, core="networking.v1.NetworkPolicyIngressRule")] = ()
    egress_rules: Annotated[tuple[RawObject, ...], doc(_EGRESS, core="networking.v1.NetworkPolicyEgressRule")] = ()


class WorkerGroupNetworkPolicyRules(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Exceptions from the cluster's network policy for one worker group."""

    group_name: Annotated[str, doc("Name of the worker group to which these rules apply.", required=True)] = ""
    ingress_rules: Annotated[tuple[RawObject, ...], doc(_INGRESS, core="networking.v1.NetworkPolicyIngressRule")] = ()
    egress_rules: Annotated[tuple[RawObject, ...], doc(_EGRESS, core="networking.v1.NetworkPolicyEgressRule")] = ()


class NetworkPolicyConfig(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Network isolation of the cluster's pods. Needs feature gate `RayClusterNetworkPolicy`."""

    mode: Annotated[
        str | None,
        doc(
            "Which direction is closed to all but the cluster's own pods: both, what comes in, or what goes out.",
            enum=["DenyAll", "DenyAllIngress", "DenyAllEgress"],
            default="DenyAll",
        ),
    ] = None
    head: Annotated[NetworkPolicyRules | None, doc("Exceptions for the head pod.")] = None
    worker: Annotated[NetworkPolicyRules | None, doc("Exceptions for the pods of all worker groups.")] = None
    worker_groups: Annotated[
        tuple[WorkerGroupNetworkPolicyRules, ...],
        doc(
            "Exceptions for single worker groups; an entry takes the place of `worker` for its group.",
            **list_map("groupName"),
        ),
    ] = ()


class TLSOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Mutual TLS between the nodes of the cluster. Needs cert-manager and feature gate `RayClusterMTLS`."""

    enabled: Annotated[
        bool | None, doc("True: cert-manager issues certificates and Ray's connections use them. Unset: off.")
    ] = None


class RayClusterUpgradeStrategy(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """What happens to running pods when the spec changes."""

    type: Annotated[
        str | None,
        doc(
            "`Recreate`: all pods are deleted and made anew when a template changes. `None` or unset: only pods made"
            " later follow the change.",
            enum=["Recreate", "None"],
        ),
    ] = None
