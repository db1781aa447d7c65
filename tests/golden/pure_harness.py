"""The golden cases without any process: gather and decide of the controllers against a world in memory.

`run_case(name, CONTROLLERS)` applies the input of a case, lets the controllers decide until nothing changes, carries
their decisions out as the applier would (and their asks as the prober would), runs the steps with compare.py's own
code, and compares each dump with `expected/` by compare.py's own normalisation. It tells within milliseconds what
`compare.py --case NAME` tells about the whole system, except for what lies between the processes.
"""

import base64
import copy
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from pure_world import OPERATOR, RAY_KINDS, Json, Key, World, merge_patch, owners

from raybus.api import decision as d
from raybus.api import kinds, messages, subjects
from raybus.api.times import Instant, format_time
from raybus.api.view import Entry, View
from raybus.runtime.controller import Controller

compare: Any = import_module("compare")
"""The recordings' own tool, untyped; conftest.py puts its folder on the path."""

HERE = Path(__file__).parent
FAKE_IP = "10.99.0.1"
QUIET = 6.0
"""Virtual seconds without a change that count as stable, as in compare.py's default."""
ROUNDS = 200
"""More rounds of decisions than any case needs; a controller that never comes to rest is an error."""
REPORTS = {
    "cluster": "raycluster-controller",
    "job": "rayjob-controller",
    "cron": "raycronjob-controller",
    "serve": "rayservice-controller",
}
WATCHED = {kind.kind for kind in kinds.KINDS if kind.selectors}

Controllers = Sequence[Controller[Any, Any]]


# ------------------------------------------------------------------ the watcher's part
def of_cluster(world: World, root: Json) -> Callable[[Json], bool]:
    """What a RayCluster's view holds: itself, and what carries its name as label or has it for an owner."""
    name, uid = root["metadata"]["name"], root["metadata"]["uid"]

    def belongs(obj: Json) -> bool:
        meta = obj["metadata"]
        return meta["uid"] == uid or (
            obj["kind"] not in RAY_KINDS
            and (meta.get("labels", {}).get("ray.io/cluster") == name or any(o["uid"] == uid for o in owners(obj)))
        )

    return belongs


def of_job(world: World, root: Json) -> Callable[[Json], bool]:
    """What a RayJob's view holds: itself, what it owns, its present or selected clusters with their pods and Services,
    and the pods of its submitter."""
    name, uid = root["metadata"]["name"], root["metadata"]["uid"]
    selected = (root["spec"].get("clusterSelector") or {}).get("ray.io/cluster")
    clusters = {(root.get("status") or {}).get("rayClusterName"), selected} - {None, ""}
    for obj in [*world.objects.values(), *world.graves]:
        if obj["kind"] == "RayCluster" and any(o["uid"] == uid for o in owners(obj)):
            clusters.add(obj["metadata"]["name"])

    def belongs(obj: Json) -> bool:
        meta, labels = obj["metadata"], obj["metadata"].get("labels", {})
        return (
            meta["uid"] == uid
            or any(o["uid"] == uid for o in owners(obj))
            or (obj["kind"] == "RayCluster" and meta["name"] in clusters)
            or (obj["kind"] in ("Pod", "Service") and labels.get("ray.io/cluster") in clusters)
            or (obj["kind"] == "Pod" and labels.get("batch.kubernetes.io/job-name") == name)
        )

    return belongs


ROUTES: dict[str, Callable[[World, Json], Callable[[Json], bool]]] = {"cluster": of_cluster, "job": of_job}


def view_of(world: World, controller: Controller[Any, Any], root: Json, extra: dict[tuple[str, str], Any]) -> View:
    """One root's view as the watcher, the prober and the applier would have published it."""
    belongs = ROUTES[controller.name](world, root)
    namespace = root["metadata"]["namespace"]
    entries: dict[tuple[str, str], Entry] = {}
    for gone, found in ((True, world.graves), (False, list(world.objects.values()))):
        for obj in found:
            if obj["kind"] not in WATCHED or obj["metadata"]["namespace"] != namespace or not belongs(obj):
                continue
            token, meta = kinds.BY_KIND[obj["kind"]].token, obj["metadata"]
            decoder = controller.decoders.get(token)
            if decoder is None:
                continue
            raw = {**obj, "metadata": {k: v for k, v in meta.items() if k != "managedFields"}}
            entries[token, meta["name"]] = Entry(
                value=None if gone else decoder(msgspec.json.encode(raw)),
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
                seq=int(meta["resourceVersion"]),
                observed_at=world.now,
                gone=gone,
            )
    for key, value in extra.items():
        entries[key] = Entry(value=value, seq=world.version, observed_at=world.now)
    name = root["metadata"]["name"]
    return View(controller=controller.name, namespace=namespace, name=name, entries=entries, seq=world.version)


# ------------------------------------------------------------------ the prober's part
class Dashboards(compare.Fake):  # type: ignore[misc]
    """The imitation dashboard of compare.py without sockets: state per namespace, calls noted for the dump."""

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self.state: Json = {}
        self.log: Json = {}

    def answer(self, world: World, ask: d.Ask, namespace: str, begun: Instant) -> messages.Fact:
        """What Ray would say to `ask` now."""
        fact = messages.Fact(id=ask.id, head=ask.head.pod_uid, begun=begun, at=begun, outcome="ok")
        endpoints = world.objects.get(("Endpoints", namespace, ask.head.service), {})
        state = self.state.get(namespace)
        if state is None or not endpoints.get("subsets"):
            return msgspec.structs.replace(fact, outcome="unreachable", text="no answer")
        match ask:
            case d.SubmitJob():
                self.note(namespace, "POST /api/jobs/", json.dumps(ask.request).encode())
                state["submitted"] = True
                return fact
            case d.StopJob():
                self.note(namespace, f"POST /api/jobs/{ask.job_id}/stop", b"")
                return fact
        self.note(namespace, f"GET /api/jobs/{ask.job_id}", b"")
        job = dict(state.get("job") or {})
        if not job or (job.pop("after_submit", None) and not state.get("submitted")):
            return msgspec.structs.replace(fact, outcome="missing", text="Ray does not know the job")
        if job.pop("ended", None):
            job["end_time"] = int(begun * 1000)
        return msgspec.structs.replace(fact, job=msgspec.convert(job, messages.JobFact))


# ------------------------------------------------------------------ the applier's part
def is_ours(found: Json, body: Json) -> bool:
    """Whether an object that is there counts as the one that was to be created."""
    wanted = [owner["uid"] for owner in owners(body) if owner.get("controller")]
    return any(owner["uid"] in wanted for owner in owners(found) if owner.get("controller"))


# ------------------------------------------------------------------ one case
class Run:
    """The controllers and their world during one case."""

    def __init__(self, controllers: Controllers, now: Instant) -> None:
        self.controllers, self.world, self.dashboards = controllers, World(now), Dashboards(FAKE_IP)
        self.facts: dict[Key, dict[str, messages.Fact]] = {}
        self.wakes: list[Instant] = []
        self.refusals: dict[Key, dict[str, messages.Refusal]] = {}
        self.needs: dict[Key, tuple[d.Ref, ...]] = {}
        self.noted: dict[Key, tuple[d.Note, ...]] = {}

    def pump(self) -> bool:
        """Decide and carry out until nothing changes; True if anything did. Fails if it never comes to rest."""
        changed = False
        for _ in range(ROUNDS):
            before, self.wakes = self.world.version, []
            asked = False
            for controller in self.controllers:
                for root in self.world.list(kinds.ROOTS[controller.name]):
                    asked |= self.turn(controller, root)
            if self.world.version == before and not asked:
                return changed
            changed |= self.world.version != before
        raise AssertionError(f"no rest after {ROUNDS} rounds: {[e['note'] for e in self.world.list('Event')][-8:]}")

    def turn(self, controller: Controller[Any, Any], root: Json) -> bool:
        """One decision about one root, carried out; True if Ray said something new."""
        key = (root["kind"], root["metadata"]["namespace"], root["metadata"]["name"])
        facts = self.facts.setdefault(key, {})
        extra: dict[tuple[str, str], Any] = {(subjects.FACT, fact.id): fact for fact in facts.values()}
        extra |= {(subjects.PRESENCE, f"{ref.kind}/{ref.name}"): self.presence(ref) for ref in self.needs.get(key, ())}
        if refused := self.refusals.get(key):
            uid = root["metadata"]["uid"]
            extra[subjects.RESULT, "applier"] = messages.Result(root_uid=uid, refusals=tuple(refused.values()))
        value = controller.gather(view_of(self.world, controller, root, extra))
        if value is None:
            return False
        decision = controller.decide(value, self.world.now, controller.knobs)
        if decision.wake_at is not None:
            self.wakes.append(decision.wake_at)
        self.carry_out(controller, root, key, decision)
        looks = self.needs.get(key, ()) != decision.needs
        self.needs[key] = decision.needs
        return self.ask(facts, decision.asks, key[1]) or looks

    def presence(self, ref: d.Ref) -> messages.Presence:
        """What the watcher says of a needed object."""
        found = self.world.objects.get((ref.kind, ref.namespace, ref.name))
        return messages.Presence(ref=ref, exists=found is not None, keys=tuple(sorted((found or {}).get("data", {}))))

    def ask(self, facts: dict[str, messages.Fact], asks: Iterable[d.Ask], namespace: str) -> bool:
        """Answer what was asked: actions once per head, probes when their answer is old."""
        news, wanted = False, {ask.id: ask for ask in asks}
        for gone in set(facts) - set(wanted):
            del facts[gone]
        for ask in wanted.values():
            known = facts.get(ask.id)
            fresh = ask.fresh if isinstance(ask, d.ProbeJob) else 2.0
            final = known and known.outcome == "ok" and not isinstance(ask, d.ProbeJob)
            if known and known.head == ask.head.pod_uid and (final or self.world.now - known.begun < fresh):
                if not final:
                    self.wakes.append(Instant(known.begun + fresh))
                continue
            fact = self.dashboards.answer(self.world, ask, namespace, self.world.now)
            news |= known is None or (known.outcome, known.job, known.head) != (fact.outcome, fact.job, fact.head)
            facts[ask.id] = fact
            self.wakes.append(Instant(self.world.now + fresh))
        return news

    def carry_out(self, controller: Controller[Any, Any], root: Json, key: Key, decision: d.Decision) -> None:
        """Finalizers, status, children, finalizers, events: the applier's order (design §3)."""
        world, meta = self.world, root["metadata"]
        last: list[str] | None = None
        if decision.finalizers is not None:
            foreign = [name for name in meta.get("finalizers", []) if not name.startswith("ray.io/")]
            wanted = [*foreign, *sorted(decision.finalizers)]
            if set(wanted) > set(meta.get("finalizers", [])):
                world.set_finalizers(key, wanted)
            elif set(wanted) != set(meta.get("finalizers", [])):
                last = wanted
        if decision.status is not None and decision.status != root.get("status"):
            world.write_status(key, decision.status)
        rests = self.refusals.get(key, {})
        todo = [intent for intent in decision.intents if messages.fingerprint(intent) not in rests]
        notes = [note for intent in todo for note in self.effect(key, intent)]
        if last is not None and key in world.objects:
            world.set_finalizers(key, last)
        news = decision.notes if self.noted.get(key) != decision.notes else ()
        self.noted[key] = decision.notes
        for note in [*notes, *news]:
            event = {"type": note.type, "reason": str(note.reason), "action": note.action, "note": note.text}
            world.record_event(note.reporter or REPORTS[controller.name], root, event)

    def effect(self, root: Key, intent: d.Intent) -> Iterator[d.Note]:
        """Carry one intent out and give the note that tells of it."""
        world, ns = self.world, root[1]
        if isinstance(intent, d.CreatePods):
            for slot in intent.slots:
                body = copy.deepcopy(intent.template)
                body["metadata"]["name"] = slot.name
                body["metadata"].setdefault("labels", {}).update(slot.labels)
                yield from self.told(root, world.create("Pod", ns, body, OPERATOR), intent, slot.name)
            return
        kind, name = intent.ref.kind, intent.ref.name
        found = world.objects.get((kind, ns, name))
        if isinstance(intent, d.Delete):
            if found is None or found["metadata"]["uid"] != intent.uid:
                return
            world.delete(kind, ns, name)
            yield from self.told(root, (200, {}), intent, name)
        elif isinstance(intent, d.Patch):
            assert found and found["metadata"]["uid"] == intent.uid, f"patch of {intent.ref}: gone or another"
            yield from self.told(root, world.patch(kind, ns, name, list(intent.operations)), intent, name)
        elif isinstance(intent, d.GenerateSecret):
            if found is None:
                value = base64.b64encode(base64.b64encode(secrets.token_bytes(32))).decode()
                body = {**intent.body, "data": dict.fromkeys(intent.keys, value)}
                yield from self.told(root, world.create(kind, ns, body, OPERATOR), intent, name)
        elif found is None:
            yield from self.told(root, world.create(kind, ns, intent.body, OPERATOR), intent, name)
        elif isinstance(intent, d.Create) and not is_ours(found, intent.body):
            yield from self.told(root, (409, {"message": "belongs to another"}), intent, name)
        elif isinstance(intent, d.Apply) and merge_patch(found, intent.body) != found:
            yield from self.told(root, world.apply(kind, ns, name, intent.body), intent, name)

    def told(self, root: Key, answer: tuple[int, Json], intent: d.Intent, name: str) -> Iterator[d.Note]:
        """The note of an intent by its outcome; a refusal rests for good."""
        code, body = answer
        if code < 300:
            note = intent.done
        else:
            key, now = messages.fingerprint(intent), self.world.now
            ref = d.Ref("Pod", root[1], name) if isinstance(intent, d.CreatePods) else intent.ref
            reason = "name-taken" if code == 409 else "Invalid"
            refusal = messages.Refusal(
                intent=key,
                ref=ref,
                verb="create",
                code=code,
                reason=reason,
                message=body["message"],
                at=now,
                retry_at=now,
            )
            self.refusals.setdefault(root, {})[key] = refusal
            self.world.version += 1
            note = intent.taken or intent.failed if isinstance(intent, d.Create) and code == 409 else intent.failed
        if note is not None:
            yield msgspec.structs.replace(note, text=note.text.replace("{names}", name))

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, waking whoever asked for it."""
        end = Instant(self.world.now + seconds)
        while True:
            self.pump()
            due = [wake for wake in self.wakes if self.world.now < wake < end]
            self.world.now = min(due, default=end)
            if self.world.now >= end:
                self.pump()
                return

    def settle(self) -> None:
        """Until nothing has changed for `QUIET` seconds (at most 60, like compare.py)."""
        started = quiet_since = self.world.now
        while self.world.now - quiet_since < QUIET and self.world.now - started < 60:
            before = self.world.version
            self.advance(1.0)
            if self.world.version != before:
                quiet_since = self.world.now

    def act(self, case: Json, namespace: str, action: Json) -> None:
        """One action of a step; time is virtual."""
        (verb, arg), *_ = action.items()
        if verb == "wait":
            self.advance(arg)
        elif verb == "until":
            end = self.world.now + arg.get("limit", 60)
            while not compare.reached(self.world, namespace, arg) and self.world.now < end:
                self.advance(1.0)
        else:
            compare.now = lambda: format_time(self.world.now)
            compare.act(self.world, namespace, case, action, self.dashboards)
            self.pump()


def run_case(name: str, controllers: Controllers) -> Iterator[tuple[str, list[str]]]:
    """(`case` or `case.stepN`, differing fields as compare.py prints them) for the input and each of its steps."""
    case = compare.load_case(name)
    namespace = f"g-{name}"
    run = Run(controllers, Instant(float(int(time.time()))))
    compare.start_case(run.world, case, namespace, run.dashboards)
    for number in range(len(case["steps"]) + 1):
        for action in case["steps"][number - 1]["do"] if number else ():
            run.act(case, namespace, action)
        run.settle()
        found = compare.dump(run.world, namespace, case, run.dashboards)
        expected = json.loads(Path(compare.out_path(str(HERE / "expected"), name, number)).read_text())
        expected.pop("rejected", None)
        yield f"{name}.step{number}" if number else name, compare.differences(expected, found, False)


def accepted(lines: Iterable[str], label: str, rules: Sequence[Any]) -> list[str]:
    """Those of the differing lines that no rule of `docs/deviations.yaml` accepts."""
    return [line for line in lines if not any(rule.matches(label, line) for rule in rules)]
