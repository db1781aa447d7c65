"""RayService: Ray Serve applications on clusters that are replaced without a gap (contract rayservice §1)."""

from typing import Annotated

from msgspec import Struct, field

from raybus.api.v1._doc import Int32, Int64, RawObject, Time, doc, list_map
from raybus.api.v1.meta import Condition, ObjectMeta
from raybus.api.v1.raycluster import (
    API_VERSION_TEXT,
    MANAGED_BY_RULES,
    MANAGED_BY_TEXT,
    METADATA_TEXT,
    RayClusterSpec,
    RayClusterStatus,
)


class ClusterUpgradeOptions(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The pace of an incremental upgrade."""

    max_surge_percent: Annotated[
        Int32 | None,
        doc(
            "Capacity that the new cluster may take beyond what the old one has given up, in percent, 0 to 100.",
            default=100,
        ),
    ] = None
    step_size_percent: Annotated[
        Int32 | None,
        doc("Traffic moved to the new cluster per step, in percent, 0 to `maxSurgePercent`.", required=True),
    ] = None
    interval_seconds: Annotated[Int32 | None, doc("Seconds between two steps; greater than 0.", required=True)] = None
    gateway_class_name: Annotated[str, doc("GatewayClass of the Gateway that splits the traffic.", required=True)] = ""


class RayServiceUpgradeStrategy(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """How a changed cluster spec is rolled out."""

    type: Annotated[
        str | None,
        doc(
            "`NewCluster` or unset: traffic moves to a new cluster once that is ready."
            " `NewClusterWithIncrementalUpgrade`: in steps. `None`: the running cluster stays."
        ),
    ] = None
    cluster_upgrade_options: Annotated[
        ClusterUpgradeOptions | None, doc("The pace of an incremental upgrade; needed for that type.")
    ] = None


class RayServiceSpec(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The wanted service."""

    ray_cluster_config: Annotated[
        RayClusterSpec,
        doc("The cluster that serves. A change of more than worker counts leads to an upgrade.", required=True),
    ] = RayClusterSpec()
    serve_config_v2: Annotated[
        str,
        doc("Ray Serve configuration of one or more applications, as YAML text; sent to the dashboard of the cluster."),
    ] = field(default="", name="serveConfigV2")
    serve_service: Annotated[
        RawObject | None,
        doc(
            "A Service to start from instead of the default serve Service. Ignored in incremental upgrades.",
            core="core.v1.Service",
        ),
    ] = None
    upgrade_strategy: Annotated[RayServiceUpgradeStrategy | None, doc("How a changed cluster spec is rolled out.")] = (
        None
    )
    ray_cluster_deletion_delay_seconds: Annotated[
        Int32 | None,
        doc("Seconds that a cluster which serves no longer is kept before it is deleted. Unset: 60.", minimum=0),
    ] = None
    exclude_head_pod_from_serve_svc: Annotated[
        bool, doc("True: the head pod gets no traffic from the serve Service.")
    ] = False
    suspend: Annotated[bool, doc("True: clusters, Services and routes are deleted. False: they are made again.")] = (
        False
    )
    managed_by: Annotated[str | None, doc(MANAGED_BY_TEXT, **MANAGED_BY_RULES)] = None
    service_unhealthy_second_threshold: Annotated[Int32 | None, doc("Deprecated, without effect. Seconds.")] = None
    deployment_unhealthy_second_threshold: Annotated[Int32 | None, doc("Deprecated, without effect. Seconds.")] = None


class ServeDeploymentStatus(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """What Ray Serve reports of one deployment."""

    status: Annotated[str, doc("Word of Ray Serve, such as UPDATING, HEALTHY or UNHEALTHY.")] = ""
    message: Annotated[str, doc("Explanation by Ray Serve.")] = ""


class AppStatus(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """What Ray Serve reports of one application."""

    status: Annotated[str, doc("Word of Ray Serve, such as DEPLOYING, RUNNING, DEPLOY_FAILED or UNHEALTHY.")] = ""
    message: Annotated[str, doc("Explanation by Ray Serve.")] = ""
    serve_deployment_statuses: Annotated[
        dict[str, ServeDeploymentStatus], doc("The application's deployments by name.")
    ] = field(default_factory=dict)


class RayServiceClusterStatus(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """One of the two clusters of a service. `rayClusterStatus` is always written."""

    ray_cluster_name: Annotated[str, doc("Name of the RayCluster; empty if there is none.")] = ""
    ray_cluster_status: Annotated[RayClusterStatus, doc("Copy of the status of that RayCluster.")] = field(
        default_factory=RayClusterStatus
    )
    application_statuses: Annotated[dict[str, AppStatus], doc("Ray Serve applications on that cluster by name.")] = (
        field(default_factory=dict)
    )
    target_capacity: Annotated[
        Int32 | None,
        doc("Share of its full size that Ray Serve was last told to hold, in percent. Incremental upgrades only."),
    ] = None
    traffic_routed_percent: Annotated[
        Int32 | None, doc("Share of the traffic that is routed to it, in percent. Incremental upgrades only.")
    ] = None
    last_traffic_migrated_time: Annotated[
        Time | None, doc("When that share last changed. RFC 3339, UTC. Incremental upgrades only.")
    ] = None


class RayServiceStatus(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The observed service. Both cluster statuses are always written (contract rayservice §1.3)."""

    conditions: Annotated[
        tuple[Condition, ...],
        doc("Aspects of the service's state: Ready, UpgradeInProgress and others.", **list_map("type")),
    ] = ()
    service_status: Annotated[
        str, doc("Deprecated, use condition Ready. `Running` while that is True, else empty.")
    ] = ""
    num_serve_endpoints: Annotated[Int32, doc("Number of ready pods behind the serve Service.")] = 0
    active_service_status: Annotated[RayServiceClusterStatus, doc("The cluster that serves.")] = field(
        default_factory=RayServiceClusterStatus
    )
    pending_service_status: Annotated[
        RayServiceClusterStatus, doc("The cluster that is being brought up to take over.")
    ] = field(default_factory=RayServiceClusterStatus)
    last_update_time: Annotated[Time | None, doc("When this status was last written. RFC 3339, UTC.")] = None
    observed_generation: Annotated[Int64, doc("`metadata.generation` of the spec that this status describes.")] = 0


class RayService(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Ray Serve applications with a stable address, on clusters that are replaced without a gap when their spec
    changes."""

    api_version: Annotated[str, doc(API_VERSION_TEXT)] = field(default_factory=lambda: "ray.io/v1")
    kind: Annotated[str, doc("`RayService`.")] = field(default_factory=lambda: "RayService")
    metadata: Annotated[ObjectMeta, doc(METADATA_TEXT)] = field(default_factory=ObjectMeta)
    spec: Annotated[RayServiceSpec, doc("The wanted service.")] = field(default_factory=RayServiceSpec)
    status: Annotated[RayServiceStatus, doc("The observed service, written by the control plane.")] = field(
        default_factory=RayServiceStatus
    )
