"""Invariants of RayClusters and their pods, checked at every write to the API server (design §3)."""

from raybus.api.decision import Json
from raybus.testkit.api_store import Change
from raybus.testkit.sim_ledger import Ledger, by_us, owner

ENDED = ("Failed", "Succeeded")
HEARD = 5.0
"""Seconds after which every controller that runs has heard of a pod: until then its name may look free."""


class PodRules:
    """Never two heads, never more pods than wanted, no second replacement, no name used twice, no usable pod deleted
    that is still wanted; a RayCluster's status never goes back."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._store = ledger, ledger.store
        self._deleted_by_us: set[str] = set()
        self._graves: dict[tuple[str, str, str], tuple[float, str]] = {}
        """(namespace, pod name, owner's UID) -> when the last such pod went, and its UID."""
        ledger.store.observers.append(self._see)

    def _see(self, change: Change) -> None:
        if change.kind == "RayCluster" and change.before is not None and change.after is not None:
            self._status(change.before, change.after)
        if change.kind != "Pod":
            return
        pod = change.after or change.before
        assert pod is not None
        controller = owner(pod)
        if controller is None or controller["kind"] != "RayCluster":
            return
        if change.before is None:
            self._created(pod, controller)
        elif change.after is None:
            self._graves[(*change.key, controller["uid"])] = (self._ledger.time(), pod["metadata"]["uid"])
        was_going = change.before is not None and "deletionTimestamp" in change.before["metadata"]
        going = change.after is None or "deletionTimestamp" in change.after["metadata"]
        if change.before is not None and going and not was_going and by_us(self._store):
            self._deleted(change.before, controller)

    def _created(self, pod: Json, controller: Json) -> None:
        meta, uid = pod["metadata"], controller["uid"]
        died, former = self._graves.get((meta["namespace"], meta["name"], uid), (0.0, ""))
        known = self._ledger.time() - self._ledger.published.get(former, self._ledger.time())
        if known > HEARD and died > self._ledger.wiped_at:
            self._ledger.violate("no name is used twice", f"pod {meta['name']} was created again")
        if meta["labels"].get("ray.io/node-type") == "head":
            heads = [p["metadata"]["name"] for p in self._pods(pod, "head")]
            if len(heads) > 1:
                self._ledger.violate("never two heads", f"{controller['name']} has {heads}")
            return
        wishes = self._ledger.wishes(uid)
        if not wishes:
            return
        group = meta["labels"]["ray.io/group"]
        most = max(wish.pods.get(group, 0) for wish in wishes)
        named = frozenset().union(*(wish.named for wish in wishes))
        present = [p["metadata"]["name"] for p in self._pods(pod, "worker") if p["metadata"]["name"] not in named]
        if len(present) > most:
            text = f"group {group} of {controller['name']} has {len(present)} pods, {most} are wanted: {present}"
            self._ledger.violate("never more pods than wanted", text)

    def _deleted(self, pod: Json, controller: Json) -> None:
        """An applier has deleted `pod`, which is not going yet."""
        meta = pod["metadata"]
        self._deleted_by_us.add(meta["uid"])
        if pod["status"].get("phase") in ENDED:
            return
        if meta["labels"].get("ray.io/node-type") == "head":
            if len(self._pods(pod, "head")) < 2:
                self._ledger.violate(
                    "no usable pod is deleted", f"head {meta['name']} was the only one and had not ended"
                )
            return
        wishes, group = self._ledger.wishes(controller["uid"]), meta["labels"]["ray.io/group"]
        if not wishes or any(meta["name"] in wish.named for wish in wishes):
            return
        least = min(wish.pods.get(group, 0) for wish in wishes)
        rest = [p for p in self._pods(pod, "worker") if p["metadata"]["uid"] not in self._deleted_by_us]
        if len(rest) < least:
            text = f"{meta['name']} was deleted and {len(rest)} pods of {group} stay, {least} are wanted"
            self._ledger.violate("no usable pod is deleted", text)

    def _pods(self, like: Json, node_type: str) -> list[Json]:
        """All existing pods of the same owner, node type and group."""
        meta = like["metadata"]
        uid, group = (owner(like) or {})["uid"], meta["labels"].get("ray.io/group")
        return [
            pod
            for (namespace, _), pod in self._store.objects["Pod"].items()
            if namespace == meta["namespace"]
            and (owner(pod) or {}).get("uid") == uid
            and pod["metadata"]["labels"].get("ray.io/node-type") == node_type
            and pod["metadata"]["labels"].get("ray.io/group") == group
        ]

    def _status(self, before: Json, after: Json) -> None:
        old, new, name = before.get("status") or {}, after.get("status") or {}, after["metadata"]["name"]
        if new.get("observedGeneration", 0) < old.get("observedGeneration", 0):
            self._ledger.violate("status never goes back", f"observedGeneration of RayCluster {name}")
        if _provisioned(old) and not _provisioned(new):
            self._ledger.violate("status never goes back", f"RayCluster {name} was provisioned and is not any more")
        if "deletionTimestamp" in before["metadata"] and old != new:
            self._ledger.violate(
                "nothing is done for what goes", f"status of RayCluster {name}, which is being deleted"
            )


def _provisioned(status: Json) -> bool:
    conditions = status.get("conditions") or ()
    return any(c["type"] == "RayClusterProvisioned" and c["status"] == "True" for c in conditions)
