"""What each service may do, as the API server and nats-server are told: the text of `docs/permissions.md`."""

import json
from collections.abc import Iterator

import msgspec

from raybus.bus.server_config import ROLES, permissions
from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl
from raybus.kube.client import connect
from raybus.kube.config import Access
from raybus.kube.port import Request

KUBERNETES = ("watcher", "applier", "prober")
NOBODY = ("--validate=false", "--as=raybus:nobody", "--as-group=system:authenticated")
"""An authenticated user to whom nothing is bound: what he may do everybody may."""

_HEAD = """# Who may do what

Written from a running API server (`SelfSubjectRulesReview` with each service's own credential, without what every
authenticated user may do) and from the users of nats-server, by `tests/integration/test_least_privilege.py`, which
fails when this page is not what they say. cluster-ctl, job-ctl and serve-ctl have no Kubernetes credential at all.
"""


async def dump(cluster: Cluster, kubectl: Kubectl) -> str:
    """The whole page."""
    common = set(_lines(kubectl("create", "-f", "-", "-o", "json", *NOBODY, stdin=_review())))
    parts = [_HEAD, "## Kubernetes\n"]
    for service in KUBERNETES:
        access = Access(kubeconfig=str(cluster.kubeconfig_for(service)))
        async with await connect(access, "raybus-test") as client:
            answer = await client.send(
                Request(
                    method="POST", path="/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", body=_review().encode()
                )
            )
        rows = sorted(set(_lines(answer.body.decode())) - common)
        parts.append(f"### {service}\n\n| resources | names | verbs |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n")
    parts.append("## Bus\n")
    for service in ROLES:
        allowed = permissions(service)
        rows = [f"publish {subject}" for subject in allowed["publish"]["allow"]]
        rows += [f"never publish {subject}" for subject in allowed["publish"].get("deny", ())]
        rows += [f"subscribe {subject}" for subject in allowed["subscribe"]["allow"]]
        parts.append(f"### {service}\n\n```\n" + "\n".join(rows) + "\n```\n")
    return "\n".join(parts)


def _review() -> str:
    head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
    return json.dumps(head | {"spec": {"namespace": "default"}})


def _lines(review: str) -> Iterator[str]:
    """One table row per API group, resource and names."""
    status = msgspec.json.decode(review)["status"]
    verbs: dict[tuple[str, str], set[str]] = {}
    for rule in status.get("resourceRules") or ():
        for group in rule.get("apiGroups") or [""]:
            for resource in rule.get("resources") or ():
                names = ", ".join(rule.get("resourceNames") or ["all"])
                verbs.setdefault((f"{resource}.{group}" if group else resource, names), set()).update(rule["verbs"])
    for (resource, names), found in verbs.items():
        yield f"| {resource} | {names} | {', '.join(sorted(found))} |"
    for rule in status.get("nonResourceRules") or ():
        for url in rule.get("nonResourceURLs") or ():
            yield f"| {url} | all | {', '.join(sorted(rule['verbs']))} |"
