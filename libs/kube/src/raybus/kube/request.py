"""Requests for single objects by name, and the paths of all others; pure (style §2.7)."""

from urllib.parse import quote

from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND, Kind
from raybus.kube.port import Request


def path(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of an object, or of a collection without `name`; without `namespace` the cluster-wide one."""
    parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    if namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(kind.plural)
    if name:
        parts.append(quote(name, safe=""))
    if subresource:
        parts.append(subresource)
    return "/" + "/".join(parts)


def path_of(ref: Ref, subresource: str = "") -> str:
    """The path of a named object. Raises KeyError for a kind that is not in `kinds.KINDS`."""
    return path(BY_KIND[ref.kind], ref.namespace, ref.name, subresource)


def get(ref: Ref) -> Request:
    """Read one named object from etcd's present state."""
    return Request(method="GET", path=path_of(ref))


def resources(group: str, version: str) -> Request:
    """Which kinds a group and version serves (`APIResourceList`); 404 when the group is not there."""
    return Request(method="GET", path=f"/apis/{group}/{version}" if group else f"/api/{version}")
