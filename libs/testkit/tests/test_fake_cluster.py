"""Kubelet, Job controller and submitters of the API server in memory: what no bare API server can be compared with."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.api.times import Instant
from raybus.testkit.api_controllers import GarbageCollector, JobController
from raybus.testkit.fake_api import FakeApi
from raybus.testkit.fake_kubelet import Kubelet, is_ready
from raybus.testkit.fake_ray import FakeRay, Submitters
from raybus.testkit.virtual_time import run_virtual

POD: Json = {"spec": {"containers": [{"name": "c"}]}}


class World:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.api = FakeApi(lambda: Instant(1000.0 + loop.time()), random.Random(1))
        self.kubelet = Kubelet(self.api, lambda _: 0.1)
        self.ray = FakeRay(self.api, lambda: Instant(1000.0 + loop.time()))
        self.kubelet.run = Submitters(self.ray, self.kubelet, lambda _: 0.1, patience=4.0).run
        JobController(self.api, lambda _: 0.1)
        GarbageCollector(self.api, lambda _: 0.1)

    def create(self, kind: str, name: str, body: Json, **meta: Any) -> Json:
        return self.api.verbs.create(BY_KIND[kind], "ns", {**body, "metadata": {"name": name, **meta}})

    def get(self, kind: str, name: str) -> Json:
        found = self.api.store.get(kind, ("ns", name))
        assert found is not None
        return found

    def head(self) -> None:
        """A ready head pod behind a Service."""
        self.create("Pod", "head", POD, labels={"ray.io/node-type": "head"})
        self.create("Service", "svc", {"spec": {"selector": {"ray.io/node-type": "head"}, "ports": [{"port": 8265}]}})

    def job(self, backoff: int, entrypoint: str = "work 2 SUCCEEDED") -> None:
        env = {"RAY_DASHBOARD_ADDRESS": "svc.ns.svc:8265", "RAY_JOB_SUBMISSION_ID": "id"}
        container = {"name": "s", "args": [entrypoint], "env": [{"name": k, "value": v} for k, v in env.items()]}
        template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        self.create("Job", "job", {"spec": {"backoffLimit": backoff, "template": template}})

    def conditions(self) -> list[str]:
        return [c["type"] for c in self.get("Job", "job")["status"].get("conditions", ())]


def play(story: Any) -> None:
    async def run() -> None:
        await story(World())

    main: Coroutine[Any, Any, None] = run()
    run_virtual(main)


def test_a_pod_gets_a_node_runs_becomes_ready_and_ends_gracefully() -> None:
    async def story(world: World) -> None:
        pod = world.create("Pod", "p", POD)
        assert pod["status"] == {"phase": "Pending"}
        await asyncio.sleep(1)
        assert is_ready(world.get("Pod", "p")) and world.get("Pod", "p")["status"]["podIP"]
        world.api.verbs.delete(BY_KIND["Pod"], ("ns", "p"), {})
        assert world.get("Pod", "p")["metadata"]["deletionTimestamp"]
        await asyncio.sleep(1)
        assert world.api.store.get("Pod", ("ns", "p")) is None

    play(story)


def test_a_container_that_ends_is_started_again_or_ends_its_pod() -> None:
    async def story(world: World) -> None:
        always = world.create("Pod", "a", POD)["metadata"]["uid"]
        never = world.create("Pod", "n", {"spec": {**POD["spec"], "restartPolicy": "Never"}})["metadata"]["uid"]
        await asyncio.sleep(1)
        world.kubelet.end(always, 1)
        world.kubelet.end(never, 1)
        assert not is_ready(world.get("Pod", "a"))
        assert world.get("Pod", "n")["status"]["phase"] == "Failed"
        await asyncio.sleep(1)
        assert is_ready(world.get("Pod", "a"))

    play(story)


def test_a_submitter_submits_once_and_its_job_completes() -> None:
    async def story(world: World) -> None:
        world.head()
        world.job(backoff=0)
        await asyncio.sleep(10)
        assert world.conditions() == ["SuccessCriteriaMet", "Complete"]
        assert [status for _, status in world.ray.truth("id")] == ["SUCCEEDED"]

    play(story)


def test_a_job_whose_pods_fail_is_tried_again_until_its_limit() -> None:
    async def story(world: World) -> None:
        world.job(backoff=1)
        await asyncio.sleep(60)
        assert world.conditions() == ["FailureTarget", "Failed"]
        assert world.get("Job", "job")["status"]["failed"] == 2

    play(story)


def test_a_head_refuses_a_known_id_and_forgets_with_its_pod() -> None:
    async def story(world: World) -> None:
        world.head()
        await asyncio.sleep(1)
        head = world.ray.resolve("svc.ns.svc")
        assert head is not None
        request = {"submission_id": "id", "entrypoint": "work 5 FAILED"}
        assert world.ray.submit(head, request)[0] == 200
        code, body = world.ray.submit(head, request)
        assert code == 500 and b"Please use a different submission_id" in body
        world.api.verbs.delete(BY_KIND["Pod"], ("ns", "head"), {})
        assert world.ray.resolve("svc.ns.svc") is None

    play(story)
