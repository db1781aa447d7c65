"""Presence of named objects, told while an ask needs them."""

import asyncio

import msgspec
from watcher_world import World, body, play

from raybus.api import subjects
from raybus.api.decision import Ref
from raybus.api.messages import H_SCHEMA, SCHEMA, AskMessage, Presence, Root


def presence(world: World, root: str, name: str) -> Presence | None:
    message = world.message("cluster", root, subjects.PRESENCE, name)
    return msgspec.json.decode(message.data, type=Presence) if message is not None and message.data else None


async def ask(world: World, root: str, *needs: Ref) -> None:
    about = Root(kind="RayCluster", namespace="ns", name=root, uid="u", resource_version="1")
    data = msgspec.json.encode(AskMessage(root=about, needs=needs)) if needs else b""
    await world.bus_server.connect().put("ASK", subjects.ask("cluster", "ns", root), data, {H_SCHEMA: SCHEMA})


def test_needs_are_told_while_they_are_asked_for_without_any_value() -> None:
    async def story(world: World) -> None:
        await world.start()
        secret = Ref("Secret", "ns", "tls")
        await ask(world, "c", secret)
        await world.until(lambda: presence(world, "c", "Secret/tls") is not None, "told")
        found = presence(world, "c", "Secret/tls")
        assert found is not None and not found.exists
        data = {"tls.crt": "c2VjcmV0", "tls.key": "c2VjcmV0", "ca.crt": ""}
        world.create("Secret", body("Secret", "tls", data=data))
        await world.until(lambda: (presence(world, "c", "Secret/tls") or Presence).exists is True, "it exists now")
        message = world.message("cluster", "c", subjects.PRESENCE, "Secret/tls")
        assert message is not None and b"c2VjcmV0" not in message.data
        assert (presence(world, "c", "Secret/tls") or Presence).keys == ("tls.crt", "tls.key")

        seq = world.last_seq()
        await ask(world, "d", secret)
        await world.until(lambda: presence(world, "d", "Secret/tls") is not None, "told to another root")
        await asyncio.sleep(60)
        assert world.last_seq() == seq + 1, "told on change only"
        await ask(world, "c")
        await world.until(lambda: world.gone("cluster", "c", subjects.PRESENCE, "Secret/tls"), "withdrawn")
        assert presence(world, "d", "Secret/tls") is not None
        await ask(world, "d")
        await asyncio.sleep(1)
        reads = len(world.requests)
        await asyncio.sleep(20)
        assert not [request for request in world.requests[reads:] if "secrets" in request.path]

    play(story)


def test_needs_survive_a_new_watcher_without_being_told_again() -> None:
    async def story(world: World) -> None:
        first = await world.start()
        world.create("ServiceAccount", body("ServiceAccount", "sa"))
        await ask(world, "c", Ref("ServiceAccount", "ns", "sa"))
        await ask(world, "old", Ref("ServiceAccount", "ns", "sa"))
        await world.until(lambda: presence(world, "c", "ServiceAccount/sa") is not None, "told")
        await world.until(lambda: presence(world, "old", "ServiceAccount/sa") is not None, "told")
        await first.end()
        told = world.message("cluster", "c", subjects.PRESENCE, "ServiceAccount/sa")
        await ask(world, "old")
        await world.start("w2")
        await world.until(lambda: world.gone("cluster", "old", subjects.PRESENCE, "ServiceAccount/sa"), "withdrawn")
        await asyncio.sleep(30)
        assert world.message("cluster", "c", subjects.PRESENCE, "ServiceAccount/sa") == told

    play(story)


def test_an_ask_of_a_later_release_changes_nothing_and_readiness_says_so() -> None:
    async def story(world: World) -> None:
        replica = await world.start()
        await ask(world, "c", Ref("ServiceAccount", "ns", "sa"))
        await world.until(lambda: presence(world, "c", "ServiceAccount/sa") is not None, "told")
        subject = subjects.ask("cluster", "ns", "c")
        await world.bus_server.connect().put("ASK", subject, b"{}", {H_SCHEMA: "2.0"})
        await world.until(lambda: "wait for a later release of watcher" in replica.watcher.problem(), "said")
        assert presence(world, "c", "ServiceAccount/sa") is not None
        await ask(world, "c")
        await world.until(lambda: replica.ready, "ready again")

    play(story)
