"""RayJob: one program run on Ray, on a cluster made for it or on one that is there (contract rayjob §1)."""

from typing import Annotated

from msgspec import Struct, field

from raybus.api.v1._doc import Int32, Int64, RawObject, Time, doc, rules
from raybus.api.v1.meta import ObjectMeta
from raybus.api.v1.raycluster import (
    API_VERSION_TEXT,
    MANAGED_BY_RULES,
    MANAGED_BY_TEXT,
    METADATA_TEXT,
    RayClusterSpec,
    RayClusterStatus,
)

_POLICIES = ["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"]
_POLICY_TEXT = (
    "What is deleted: the RayCluster (`DeleteCluster`), its workers (`DeleteWorkers`), this RayJob with all it owns"
    " (`DeleteSelf`), or nothing (`DeleteNone`)."
)


class DeletionPolicy(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """Deprecated form of a deletion rule."""

    policy: Annotated[str | None, doc(_POLICY_TEXT, enum=_POLICIES)] = None


class DeletionCondition(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """When a deletion rule applies: exactly one of the two states, and a delay."""

    job_status: Annotated[
        str | None, doc("Applies when Ray reports this job status.", enum=["SUCCEEDED", "FAILED"])
    ] = None
    job_deployment_status: Annotated[
        str | None,
        doc("Applies when the RayJob has this deployment status, also if Ray never reported an end.", enum=["Failed"]),
    ] = None
    ttl_seconds: Annotated[Int32, doc("Seconds between `status.endTime` and the deletion.", default=0, minimum=0)] = (
        field(default=0, name="ttlSeconds")
    )


class DeletionRule(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """One thing to delete after the end, and when."""

    policy: Annotated[str, doc(_POLICY_TEXT, required=True, enum=_POLICIES)] = ""
    condition: Annotated[
        DeletionCondition,
        doc(
            "When the rule applies.",
            required=True,
            **rules(
                (
                    "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
                    "a deletion condition takes jobStatus or jobDeploymentStatus, not both",
                ),
                (
                    "has(self.jobStatus) || has(self.jobDeploymentStatus)",
                    "a deletion condition needs jobStatus or jobDeploymentStatus",
                ),
            ),
        ),
    ] = DeletionCondition()


class DeletionStrategy(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """What is deleted after the end: either a list of rules, or both deprecated policies."""

    on_success: Annotated[
        DeletionPolicy | None, doc("Deprecated, use `deletionRules`. What to delete once the job has succeeded.")
    ] = None
    on_failure: Annotated[
        DeletionPolicy | None, doc("Deprecated, use `deletionRules`. What to delete once the job has failed.")
    ] = None
    deletion_rules: Annotated[
        tuple[DeletionRule, ...],
        doc(
            "What to delete and when. Of the rules that are due together the most destructive one is carried out.",
            minItems=1,
            **{"x-kubernetes-list-type": "atomic"},
        ),
    ] = ()


class SubmitterConfig(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The Kubernetes Job that submits the entrypoint in K8sJobMode."""

    backoff_limit: Annotated[
        Int32 | None,
        doc("How often the submitter pod is tried again before the submission counts as failed. Unset: 2."),
    ] = None


class RayJobSpec(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The wanted run."""

    entrypoint: Annotated[str, doc("Shell command of the program, run on the head by Ray.")] = ""
    ray_cluster_spec: Annotated[
        RayClusterSpec | None,
        doc(
            "Cluster to make for this job. Changes have no effect once it exists. Either this or `clusterSelector` is"
            " needed."
        ),
    ] = None
    cluster_selector: Annotated[
        dict[str, str],
        doc(
            "Use an existing RayCluster of this namespace: its name under key `ray.io/cluster`; other keys are ignored."
        ),
    ] = field(default_factory=dict)
    submission_mode: Annotated[
        str,
        doc(
            "How the entrypoint gets to Ray: `K8sJobMode` by a Kubernetes Job, `HTTPMode` by the control plane,"
            " `SidecarMode` by a container in the head pod, `InteractiveMode` by the user.",
            default="K8sJobMode",
        ),
    ] = ""
    job_id: Annotated[
        str, doc("Submission id in Ray. Empty: generated; in InteractiveMode the user fills it in after submitting.")
    ] = ""
    runtime_env_yaml: Annotated[
        str, doc("Ray runtime environment as the text of a YAML mapping: packages, variables, working directory.")
    ] = field(default="", name="runtimeEnvYAML")
    metadata: Annotated[dict[str, str], doc("Metadata that Ray keeps with the job.")] = field(default_factory=dict)
    entrypoint_num_cpus: Annotated[float, doc("CPU cores reserved for the entrypoint. 0: none.")] = 0.0
    entrypoint_num_gpus: Annotated[float, doc("GPUs reserved for the entrypoint. 0: none.")] = 0.0
    entrypoint_resources: Annotated[
        str, doc("Other Ray resources reserved for the entrypoint, as the text of a JSON object of name and amount.")
    ] = ""
    backoff_limit: Annotated[
        Int32 | None, doc("How often a failed job is tried again, each time on a new cluster.", default=0)
    ] = None
    active_deadline_seconds: Annotated[
        Int32 | None,
        doc("Seconds from `status.startTime` after which an unfinished job fails; greater than 0. Unset: no limit."),
    ] = None
    pre_running_deadline_seconds: Annotated[
        Int32 | None,
        doc(
            "Seconds from `status.startTime` within which the job must be running, else it fails. Unset: no limit.",
            minimum=1,
        ),
    ] = None
    shutdown_after_job_finishes: Annotated[
        bool, doc("True: the RayCluster is deleted `ttlSecondsAfterFinished` after the end.")
    ] = False
    ttl_seconds_after_finished: Annotated[
        Int32,
        doc("Seconds between `status.endTime` and the deletion that `shutdownAfterJobFinishes` asks for.", default=0),
    ] = 0
    deletion_strategy: Annotated[
        DeletionStrategy | None,
        doc(
            "Finer control over what is deleted after the end. `deletionRules` exclude `shutdownAfterJobFinishes`.",
            **rules(
                (
                    "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
                    "deletionStrategy takes deletionRules or the deprecated onSuccess and onFailure, not both",
                ),
                (
                    "((has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules))",
                    "deletionStrategy needs deletionRules, or both onSuccess and onFailure",
                ),
            ),
        ),
    ] = None
    submitter_config: Annotated[
        SubmitterConfig | None, doc("Settings of the submitter's Kubernetes Job. K8sJobMode only.")
    ] = None
    submitter_pod_template: Annotated[
        RawObject | None,
        doc(
            "Template of the submitter pod; its first container submits. Unset: a small default. K8sJobMode only."
            " `kubectl explain pod` tells the fields.",
            core="core.v1.PodTemplateSpec",
        ),
    ] = None
    suspend: Annotated[
        bool, doc("True: no cluster is made, and one that runs is torn down. Needs `shutdownAfterJobFinishes`.")
    ] = False
    managed_by: Annotated[str | None, doc(MANAGED_BY_TEXT, **MANAGED_BY_RULES)] = None


class RayJobInfo(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """When the program ran, by Ray's clock."""

    start_time: Annotated[Time | None, doc("When Ray started the entrypoint. RFC 3339, UTC.")] = None
    end_time: Annotated[Time | None, doc("When the entrypoint ended. RFC 3339, UTC.")] = None


class RayJobStatus(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The observed run. `succeeded`, `failed`, `rayJobInfo` and `rayClusterStatus` are always written (contract
    rayjob §1.3)."""

    job_status: Annotated[
        str,
        doc(
            "What Ray reports of the job: PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED; empty until Ray has been"
            " heard."
        ),
    ] = ""
    job_deployment_status: Annotated[
        str,
        doc(
            "Where the RayJob stands: Initializing, Waiting, Running, Complete, Failed, ValidationFailed, Suspending,"
            " Suspended or Retrying; empty at first."
        ),
    ] = ""
    reason: Annotated[str, doc("One word for programs: why the job failed.")] = ""
    message: Annotated[str, doc("A sentence for people: what went wrong, or what Ray says of the job.")] = ""
    job_id: Annotated[str, doc("Submission id of the present attempt.")] = ""
    ray_cluster_name: Annotated[str, doc("RayCluster of the present attempt.")] = ""
    dashboard_url: Annotated[str, doc("Host and port of the cluster's dashboard, without a scheme.")] = field(
        default="", name="dashboardURL"
    )
    start_time: Annotated[
        Time | None, doc("When the present attempt began; deadlines count from here. RFC 3339, UTC.")
    ] = None
    end_time: Annotated[
        Time | None, doc("When the end of the job was recorded; deletions count from here. RFC 3339, UTC.")
    ] = None
    succeeded: Annotated[Int32 | None, doc("Number of attempts that succeeded.", default=0)] = field(
        default_factory=int
    )
    failed: Annotated[Int32 | None, doc("Number of attempts that failed.", default=0)] = field(default_factory=int)
    ray_job_info: Annotated[RayJobInfo, doc("When the program ran, by Ray's clock.")] = field(
        default_factory=RayJobInfo
    )
    ray_cluster_status: Annotated[RayClusterStatus, doc("Copy of the status of the RayCluster.")] = field(
        default_factory=RayClusterStatus
    )
    job_status_check_failure_start_time: Annotated[
        Time | None, doc("Since when the dashboard has not answered, while it does not. RFC 3339, UTC.")
    ] = None
    observed_generation: Annotated[Int64, doc("`metadata.generation` of the spec that this status describes.")] = 0


class RayJob(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """A program run on Ray: submitted to a cluster made for it or to one that is there, followed to its end, and
    cleaned up after."""

    api_version: Annotated[str, doc(API_VERSION_TEXT)] = field(default_factory=lambda: "ray.io/v1")
    kind: Annotated[str, doc("`RayJob`.")] = field(default_factory=lambda: "RayJob")
    metadata: Annotated[ObjectMeta, doc(METADATA_TEXT)] = field(default_factory=ObjectMeta)
    spec: Annotated[RayJobSpec, doc("The wanted run.")] = field(default_factory=RayJobSpec)
    status: Annotated[RayJobStatus, doc("The observed run, written by the control plane.")] = field(
        default_factory=RayJobStatus
    )
