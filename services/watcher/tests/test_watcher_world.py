"""The world: what the watches have shown, and the changes to views that follow."""

import msgspec
import pytest

from raybus.api.kinds import BY_KIND
from raybus.api.routes import Key
from raybus.kube.objects import Object, parse_object
from raybus.watcher.targets import targets
from raybus.watcher.world import Change, Present, World

POD, CLUSTER, JOB = BY_KIND["Pod"], BY_KIND["RayCluster"], BY_KIND["RayJob"]


def thing(kind: str, name: str, version: str, uid: str = "", **more: object) -> Object:
    meta = {"name": name, "namespace": "ns", "uid": uid or f"u-{name}", "resourceVersion": version}
    labels, owner, generation = more.pop("labels", {}), more.pop("owner", None), more.pop("generation", 1)
    owners = [{"kind": owner[0], "name": owner[1], "uid": "o", "controller": True}] if isinstance(owner, tuple) else []
    body = {"metadata": {**meta, "labels": labels, "ownerReferences": owners, "generation": generation}, **more}
    return parse_object(msgspec.json.encode(body), BY_KIND[kind])


def head(version: str, uid: str = "") -> Object:
    return thing("Pod", "h", version, uid, labels={"ray.io/cluster": "c", "ray.io/node-type": "head"})


def selecting(name: str, cluster: str | None, version: str = "5") -> Object:
    return thing("RayJob", name, version, spec={"clusterSelector": {"ray.io/cluster": cluster} if cluster else None})


def words(changes: list[Change]) -> list[str]:
    """`+view:object@version`, `?` instead of `+` when the bytes are to be read, `-` when absent."""
    return [
        f"{('+' if c.raw else '?') if isinstance(c, Present) else '-'}{c.route.root}:{c.key.name}@{c.version}"
        for c in changes
    ]


def test_an_object_is_present_in_each_of_its_views() -> None:
    world = World()
    assert words(world.put(0, CLUSTER, thing("RayCluster", "c", "1", owner=("RayJob", "j")))) == ["+c:c@1", "+j:c@1"]
    assert words(world.put(1, POD, head("2"))) == ["+c:h@2", "+j:h@2"]


def test_a_new_claim_asks_for_what_is_there_already_and_a_withdrawn_one_leaves_it() -> None:
    world = World()
    world.put(0, CLUSTER, thing("RayCluster", "c", "1"))
    world.put(1, POD, head("2"))
    assert words(world.put(2, JOB, selecting("j", "c"))) == ["+j:j@5", "?j:h@2", "?j:c@1"]
    assert words(world.put(2, JOB, selecting("j", None, "6"))) == ["+j:j@6", "-j:h@2", "-j:c@1"]


def test_a_deleted_claimant_takes_its_view_with_it() -> None:
    world = World()
    world.put(1, POD, head("2"))
    world.put(2, JOB, selecting("j", "c"))
    assert words(world.gone(2, Key("RayJob", "ns", "j"), "u-j", "9")) == ["-j:j@9", "-j:h@2"]


def test_the_past_changes_nothing() -> None:
    world = World()
    world.put(0, POD, head("10"))
    assert words(world.put(1, POD, head("9"))) == []
    assert words(world.gone(0, Key("Pod", "ns", "h"), "u-other", "20")) == []


def test_an_object_shown_by_two_watches_is_gone_when_neither_shows_it() -> None:
    world, key = World(), Key("Pod", "ns", "h")
    world.put(0, POD, head("10"))
    world.put(1, POD, head("10"))
    assert words(world.gone(0, key, "u-h", "11")) == []
    assert words(world.gone(1, key, "u-h", "")) == ["-c:h@10"]
    assert key not in world and len(world) == 0


def test_a_successor_of_the_name_is_not_buried_by_its_predecessors_end() -> None:
    world, key = World(), Key("Pod", "ns", "h")
    world.put(0, POD, head("10", "old"))
    assert words(world.put(1, POD, head("12", "new"))) == ["+c:h@12"]
    assert words(world.gone(0, key, "old", "11")) == []
    assert words(world.gone(1, key, "new", "13")) == ["-c:h@13"]


def test_what_was_read_by_name_does_not_outlive_the_watches() -> None:
    world, key = World(), Key("Pod", "ns", "h")
    assert words(world.refreshed(POD, head("10"))) == [] and key not in world
    world.put(1, POD, head("10"))
    assert words(world.refreshed(POD, head("10"))) == ["+c:h@10"]
    assert words(world.refreshed(POD, head("9"))) == []
    assert words(world.refreshed(POD, head("11"))) == ["+c:h@11"]
    assert words(world.gone(1, key, "u-h", "12")) == ["-c:h@12"]


def test_what_a_list_does_not_hold_is_gone_whoever_had_heard_of_it_and_what_is_newer_stays() -> None:
    world, key = World(), Key("Pod", "ns", "h")
    world.put(1, POD, head("10"))
    assert words(world.listed(0, "20", {}.keys())) == [] and key in world, "another watch shows it"
    assert words(world.listed(1, "20", {("ns", "h"): ""}.keys())) == [] and key in world
    assert words(world.listed(1, "10", {}.keys())) == [] and key in world, "the list is no newer than what is known"
    assert words(world.listed(1, "11", {}.keys())) == ["-c:h@11"] and key not in world


def test_a_rayjob_whose_selector_is_no_text_is_refused() -> None:
    bad = thing("RayJob", "j", "1", spec={"clusterSelector": {"ray.io/cluster": 7}})
    with pytest.raises(msgspec.ValidationError):
        World().put(0, JOB, bad)


def test_one_trace_for_a_rayjob_and_its_cluster_and_one_per_generation_of_others() -> None:
    world = World()
    assert world.trace_seed(Key("RayJob", "ns", "j")) == ""
    world.put(0, JOB, selecting("j", None))
    world.put(1, CLUSTER, thing("RayCluster", "c", "1", owner=("RayJob", "j")))
    world.put(1, CLUSTER, thing("RayCluster", "plain", "2", generation=3))
    assert world.trace_seed(Key("RayJob", "ns", "j")) == world.trace_seed(Key("RayCluster", "ns", "c")) == "u-j"
    assert world.trace_seed(Key("RayCluster", "ns", "plain")) == "u-plain/3"


def test_one_watch_per_kind_selector_and_namespace() -> None:
    everywhere = [str(target) for target in targets((), ())]
    assert "rayclusters" in everywhere and len([text for text in everywhere if text.startswith("pods")]) == 2
    assert not [text for text in everywhere if text.startswith(("secrets", "events", "certificates"))]
    assert [text for text in map(str, targets((), ("RayClusterMTLS",))) if text.startswith("certificates")]
    assert [str(t) for t in targets(("a", "b"), (), [CLUSTER])] == ["rayclusters in a", "rayclusters in b"]
