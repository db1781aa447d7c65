"""Names of a RayCluster's children and the rules that shorten them (contract objects §0.3; design §3, "Names")."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from raybus.api.names import suffix

PREFIX_LENGTH, LABEL_LENGTH = 50, 63


def pod_prefix(name: str, node_type: str) -> str:
    """`<first 50 characters of name>-<node type>-`, lower case; what `generateName` holds."""
    return f"{name[:PREFIX_LENGTH]}-{node_type}-".lower()


def head_prefix(cluster: str) -> str:
    """What names of head pods begin with."""
    return pod_prefix(cluster, "head")


def is_head_name(name: str, cluster: str) -> bool:
    """Whether a pod's name was generated for a head of `cluster`; the suffix has five characters."""
    prefix = head_prefix(cluster)
    return name.startswith(prefix) and len(name) == len(prefix) + 5


def worker_prefix(cluster: str, group: str) -> str:
    """What names of a group's pods begin with."""
    return pod_prefix(f"{cluster}-{group}", "worker")


def pod_names(prefix: str, uid: str, group: str, taken: Container[str]) -> Iterator[str]:
    """Free names in the order of their slots: a hash of cluster UID, group and slot number (design §3).

    `taken`: names that live, rest after their pod is gone, or are listed for deletion.
    """
    slot = 0
    while True:
        name = prefix + suffix(uid, group, str(slot))
        if name not in taken:
            yield name
        slot += 1


class Replica(NamedTuple):
    """Names of one replica of several hosts: its own, and those of its pods by host index."""

    name: str
    pods: tuple[str, ...]


def replica_names(prefix: str, uid: str, group: str, hosts: int, taken: Container[str]) -> Iterator[Replica]:
    """Free names of whole replicas in the order of their slots; none of a replica's names is in `taken`."""
    slot = 0
    while True:
        name = f"{group}-{suffix(uid, group, 'replica', str(slot))}"
        pods = tuple(prefix + suffix(uid, name, str(host)) for host in range(hosts))
        if name not in taken and not any(pod in taken for pod in pods):
            yield Replica(name, pods)
        slot += 1


def label_value(text: str) -> str:
    """The last 63 characters; a leading punctuation mark becomes `r`."""
    text = text[-LABEL_LENGTH:]
    return text if text[:1].isalnum() else "r" + text[1:]


def short_name(text: str) -> str:
    """The last 50 characters; a leading digit or punctuation mark becomes `r`."""
    text = text[-PREFIX_LENGTH:]
    return text if text[:1].isalpha() else "r" + text[1:]


def route_name(text: str, namespace: str) -> str:
    """The first characters of a Route's name: with its namespace it is part of a host name (contract objects §0.3)."""
    return short_name(text[: max(PREFIX_LENGTH + 1 - len(namespace), 0)])


def head_service(cluster: str) -> str:
    """The generated head Service."""
    return f"{cluster}-head-svc"


def gcs_claim(cluster: str) -> str:
    """The PersistentVolumeClaim that is made for the state of the GCS."""
    return f"{cluster}-gcs-pvc"


def cleanup_job(cluster: str) -> str:
    """The Job that empties Redis behind a deleted cluster."""
    return label_value(f"{cluster}-redis-cleanup")


def worker_service(cluster: str) -> str:
    """The headless Service of workers that span hosts."""
    return f"{cluster}-headless"
