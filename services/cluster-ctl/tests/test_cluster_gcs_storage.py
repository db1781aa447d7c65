"""The claim behind embedded fault tolerance (contract reconcile §13, objects §7.2 rule 12; ADR 0123)."""

from typing import Any

import msgspec
import pytest

from raybus.api.decision import Apply, Create, Decision, Patch, Ref
from raybus.api.messages import Presence
from raybus.api.reasons import Reason
from raybus.api.subjects import PRESENCE
from raybus.api.times import Instant
from raybus.api.view import Entry
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import DEFAULT_GATES, ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs(gates=DEFAULT_GATES | {"GCSFaultToleranceEmbeddedStorage"}))
NOW = Instant(1_800_000_000.0)
CLAIM = Ref("PersistentVolumeClaim", kit.NAMESPACE, "c-gcs-pvc")


def cluster(status: kit.Json | None = None, **storage: Any) -> kit.Json:
    options = {"backend": "rocksdb", **({"storage": storage} if storage else {})}
    return kit.raycluster("c", spec={"gcsFaultToleranceOptions": options}, status=status)


def claim(owner: kit.Json, owned: bool = True, size: str = "1Gi", **spec: Any) -> kit.Json:
    meta = {**kit.head(owner, "c-gcs-pvc")["metadata"], "labels": {"ray.io/cluster": "c"}}
    if not owned:
        del meta["ownerReferences"]
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": body}


def decide(owner: kit.Json, *more: kit.Json, there: bool | None = None, ref: Ref = CLAIM) -> Decision:
    children = kit.head_service(owner), kit.head(owner, "h", **kit.READY), *more
    view = kit.view_of(CONTROLLER, owner, *children)
    if there is not None:
        known = Entry(value=Presence(ref=ref, exists=there))
        view = msgspec.structs.replace(view, entries={**view.entries, (PRESENCE, f"{ref.kind}/{ref.name}"): known})
    value = CONTROLLER.gather(view)
    assert value is not None
    return CONTROLLER.decide(value, NOW, CONTROLLER.knobs)


def test_nothing_is_made_before_it_is_known_whether_the_claim_exists() -> None:
    decision = decide(cluster())
    assert decision.needs == (CLAIM,) and not decision.intents
    (create,) = decide(cluster(), there=False).intents
    assert isinstance(create, Create) and create.ref == CLAIM
    assert create.body["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def test_a_claim_of_somebody_else_is_adopted_and_not_asked_for_any_more() -> None:
    (apply,) = decide(cluster(), there=True).intents
    assert isinstance(apply, Apply) and "spec" not in apply.body
    assert set(apply.body["metadata"]) == {"name", "namespace", "labels", "ownerReferences"}
    settled = decide(cluster(), claim(cluster()))
    assert not settled.intents and not settled.needs and not settled.notes


def test_the_owner_follows_the_deletion_policy() -> None:
    keep = cluster(deletionPolicy="Retain")
    (patch,) = decide(keep, claim(keep)).intents
    assert isinstance(patch, Patch) and patch.operations == ({"op": "remove", "path": "/metadata/ownerReferences/0"},)
    (patch,) = decide(cluster(), claim(cluster(), owned=False)).intents
    assert isinstance(patch, Patch) and patch.operations[0]["op"] == "add"
    (create,) = decide(keep, there=False).intents
    assert isinstance(create, Create) and "ownerReferences" not in create.body["metadata"]


def test_a_claim_that_something_else_controls_stays_its() -> None:
    other = claim(cluster())
    other["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}]
    assert not decide(cluster(), other).intents


DIFFERENT: dict[str, tuple[kit.Json, kit.Json, str]] = {
    "size": ({"size": "6Gi"}, {}, "size 6Gi != current 1Gi"),
    "class": ({"storageClassName": "fast"}, {"storageClassName": "slow"}, "class fast != current slow"),
    "modes": ({"accessModes": ["ReadWriteMany"]}, {}, "modes ReadWriteMany != current ReadWriteOnce"),
}


@pytest.mark.parametrize(("wanted", "found", "says"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_difference_is_told_once_and_stays_in_the_status(wanted: kit.Json, found: kit.Json, says: str) -> None:
    owner = cluster(**wanted)
    first = decide(owner, claim(owner, **found))
    (note,) = first.notes
    assert (note.reason, note.action) == (Reason.FAILED_TO_CREATE_PVC, "Update") and says in note.text
    assert first.status is not None and says in first.status["reason"] and not first.intents
    again = decide(cluster(status=first.status, **wanted), claim(owner, **found))
    assert not again.notes and again.status == first.status


def test_what_is_equal_but_written_differently_is_no_difference() -> None:
    owner = cluster(size="1024Mi")
    assert not decide(owner, claim(owner, storageClassName="standard")).notes


def test_a_missing_claim_of_the_user_is_told_and_the_head_made_anyway() -> None:
    owner, ref = cluster(claimName="mine"), Ref("PersistentVolumeClaim", kit.NAMESPACE, "mine")
    assert not decide(owner, ref=ref).notes
    (note,) = decide(owner, there=False, ref=ref).notes
    assert (note.reason, note.action) == (Reason.FAILED_TO_CREATE_PVC, "Validate")
    assert not decide(owner, there=True, ref=ref).notes


INVALID: dict[str, tuple[kit.Json, kit.Json, str]] = {
    "Redis fields": ({"redisAddress": "r:1"}, {}, "redisAddress"),
    "a claim and its size": ({"storage": {"claimName": "x", "size": "1Gi"}}, {}, "size cannot be set together"),
    "our variables": ({}, {"env": [{"name": "RAY_gcs_storage", "value": "x"}]}, "RAY_gcs_storage"),
    "our mount": ({}, {"volumeMounts": [{"name": "x", "mountPath": "/data/gcs"}]}, "/data/gcs"),
}


@pytest.mark.parametrize(("options", "container", "says"), INVALID.values(), ids=INVALID)
def test_contradictions_are_refused(options: kit.Json, container: kit.Json, says: str) -> None:
    spec = {
        "gcsFaultToleranceOptions": {"backend": "rocksdb", **options},
        "headGroupSpec": {"template": kit.template(**container)},
    }
    (note,) = decide(kit.raycluster("c", spec=spec)).notes
    assert note.reason == Reason.INVALID_RAY_CLUSTER_SPEC and says in note.text
