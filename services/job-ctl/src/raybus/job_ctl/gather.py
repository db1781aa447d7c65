"""From a root's view to the frozen value that `decide` reads (design §4)."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct

from raybus.api.decision import Ref
from raybus.api.messages import Fact, Refusal, Result
from raybus.api.subjects import FACT, RESULT
from raybus.api.v1 import ObjectMeta, RayJob, RayJobStatus
from raybus.api.view import View
from raybus.job_ctl.labels import CLUSTER, NODE_TYPE, head_service
from raybus.job_ctl.seen import ClusterSeen, JobSeen, PodSeen, RayJobSeen, ServiceSeen

T = TypeVar("T")
Owned = TypeVar("Owned", ClusterSeen, JobSeen)


class JobView(Struct, frozen=True, kw_only=True):
    """All that a decision about one RayJob depends on.

    `cluster_spec`: `rayClusterSpec` as the user wrote it, as JSON. `cluster`: the RayCluster of the present attempt,
    also while it is being deleted. `head`: its head pod, if one is there that has not ended and is not being deleted;
    `head_names`: all its head pods. `cluster_service`: the cluster's head Service, `own_service`: the RayJob's.
    `submitter`: the Job of this RayJob. `facts`: ask id -> what the prober learned; `told`: ask id -> its place
    in the order in which facts were told. `refusals`: what the API server refused of this RayJob.
    """

    job: RayJob
    cluster_spec: bytes = b""
    cluster: ClusterSeen | None = None
    head: PodSeen | None = None
    head_names: frozenset[str] = frozenset()
    cluster_service: ServiceSeen | None = None
    own_service: ServiceSeen | None = None
    submitter: JobSeen | None = None
    submitter_pods: tuple[PodSeen, ...] = ()
    facts: Mapping[str, Fact] = {}
    told: Mapping[str, int] = {}
    refusals: tuple[Refusal, ...] = ()

    @property
    def meta(self) -> ObjectMeta:
        """Metadata of the RayJob."""
        return self.job.metadata

    @property
    def status(self) -> RayJobStatus:
        """The stored status."""
        return self.job.status

    @property
    def name(self) -> str:
        """Name of the RayJob."""
        return self.job.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the RayJob and of all its children."""
        return self.job.metadata.namespace

    def ref(self, kind: str, name: str) -> Ref:
        """An object in the RayJob's namespace."""
        return Ref(kind, self.namespace, name)


def gather(view: View) -> JobView | None:
    """The view of one RayJob; None when the RayJob itself is not there."""
    root = view.get("rayjob", view.name)
    if root is None or not isinstance(root.value, RayJobSeen):
        return None
    seen = root.value
    uid, attempt = seen.job.metadata.uid, seen.job.status.ray_cluster_name
    submitter = _owned(view, "job", view.name, uid, JobSeen)
    cluster = _owned(view, "raycluster", attempt, uid, ClusterSeen) if attempt else None
    heads = _heads(view, cluster)
    result = view.get(RESULT, "applier")
    return JobView(
        job=seen.job,
        cluster_spec=seen.cluster_spec,
        cluster=cluster,
        head=_head(heads, cluster),
        head_names=frozenset(pod.metadata.name for pod in heads),
        cluster_service=_cluster_service(view, cluster),
        own_service=_named(view, "service", head_service(view.name), ServiceSeen),
        submitter=submitter,
        submitter_pods=_pods_of(view, submitter),
        facts={name: entry.value for name, entry in view.living(FACT) if isinstance(entry.value, Fact)},
        told={name: entry.seq for name, entry in view.living(FACT)},
        refusals=_refusals(result.value if result else None, uid),
    )


def _named(view: View, kind: str, name: str, wanted: type[T]) -> T | None:
    entry = view.get(kind, name)
    return entry.value if entry is not None and isinstance(entry.value, wanted) else None


def _owned(view: View, kind: str, name: str, uid: str, wanted: type[Owned]) -> Owned | None:
    """The object of that name if this very RayJob controls it; a foreign one is the applier's to refuse."""
    found = _named(view, kind, name, wanted)
    return found if found is not None and _controller(found.metadata) == uid else None


def _controller(meta: ObjectMeta) -> str:
    return next((owner.uid for owner in meta.owner_references if owner.controller), "")


def _heads(view: View, cluster: ClusterSeen | None) -> tuple[PodSeen, ...]:
    if cluster is None:
        return ()
    wanted = {CLUSTER: cluster.metadata.name, NODE_TYPE: "head"}
    return tuple(pod for pod in _pods(view) if wanted.items() <= pod.metadata.labels.items())


def _head(heads: tuple[PodSeen, ...], cluster: ClusterSeen | None) -> PodSeen | None:
    named = cluster.status.head.pod_name if cluster else ""
    alive = [
        pod
        for pod in heads
        if pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Failed", "Succeeded")
    ]
    return min(alive, key=lambda pod: (pod.metadata.name != named, pod.metadata.creation_timestamp or ""), default=None)


def _cluster_service(view: View, cluster: ClusterSeen | None) -> ServiceSeen | None:
    return _named(view, "service", cluster.status.head.service_name, ServiceSeen) if cluster else None


def _pods_of(view: View, submitter: JobSeen | None) -> tuple[PodSeen, ...]:
    if submitter is None:
        return ()
    return tuple(pod for pod in _pods(view) if _controller(pod.metadata) == submitter.metadata.uid)


def _pods(view: View) -> list[PodSeen]:
    return [entry.value for _, entry in view.living("pod") if isinstance(entry.value, PodSeen)]


def _refusals(result: object, uid: str) -> tuple[Refusal, ...]:
    return result.refusals if isinstance(result, Result) and result.root_uid == uid else ()
