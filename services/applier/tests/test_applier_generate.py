"""Secrets that the applier fills itself: no value ever travels on the bus."""

import base64
import random
from typing import Any, cast

import pytest

from raybus.api import subjects
from raybus.api.decision import GenerateSecret, Note, Ref
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.applier.budget import Urgency
from raybus.applier.calls import Lane
from raybus.applier.echo import Echo
from raybus.applier.intents import Hands, sentence
from raybus.kube.port import Request, Response
from raybus.testkit.fake_api import FakeApi
from raybus.testkit.fake_bus import BusServer

INTENT = GenerateSecret(
    ref=Ref("Secret", "ns", "c"),
    body={"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c", "namespace": "ns"}},
    keys=("auth_token",),
    done=Note(type="Normal", reason=Reason.STARTED, action="Create", text="x"),
)


class World:
    """Hands of the applier before an API server and a bus in memory."""

    def __init__(self) -> None:
        now = lambda: Instant(1000.0)  # noqa: E731 - a clock that stands still
        self.api, self.bus = FakeApi(now, random.Random(1)), BusServer(now)
        self._way = self.api.connect("applier")
        echo = Echo(self.bus.connect(), now)
        self.hands = Hands(("cluster", "ns", "c"), "root-uid", cast(Lane, self), echo, {})

    async def send(self, request: Request, urgency: Urgency) -> Response:
        return await self._way.send(request)

    def secret(self) -> dict[str, Any]:
        found: dict[str, Any] | None = self.api.store.get("Secret", ("ns", "c"))
        assert found is not None, "no Secret"
        return found


@pytest.fixture
def world() -> World:
    return World()


async def test_the_value_is_the_base64_text_of_32_random_bytes_and_stays_off_the_bus(world: World) -> None:
    outcome = await world.hands.carry(INTENT)
    text = base64.b64decode(world.secret()["data"]["auth_token"])
    assert len(text) == 44 and len(base64.b64decode(text, validate=True)) == 32
    assert outcome.done and outcome.changed == ("c",) and sentence(outcome) == "generate Secret c"
    assert world.bus.streams["VIEW"].last(subjects.view("cluster", "ns", "c", "secret", "c")) is None


async def test_a_secret_that_is_there_is_used_whatever_it_holds(world: World) -> None:
    await world.hands.carry(INTENT)
    first = world.secret()
    outcome = await world.hands.carry(INTENT)
    assert outcome.done and not outcome.changed
    assert world.secret() == first


async def test_two_clusters_have_two_tokens(world: World) -> None:
    await world.hands.carry(INTENT)
    other = Ref("Secret", "ns", "d")
    body = {**INTENT.body, "metadata": {"name": "d", "namespace": "ns"}}
    await world.hands.carry(GenerateSecret(ref=other, body=body, keys=INTENT.keys))
    second = world.api.store.get("Secret", ("ns", "d"))
    assert second is not None and second["data"] != world.secret()["data"]
