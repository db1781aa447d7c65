"""Who gives way: which of two states of a subject is the newer one."""

import pytest

from raybus.api.messages import Epoch
from raybus.api.times import Instant
from raybus.bus.port import Message
from raybus.watcher.versions import DELETED, LEFT, Held, Item, held_by, is_news, newer, older, time_version


def put(version: str, uid: str = "u") -> Item:
    return Item("s", uid, version, b"{}")


def absent(version: str, uid: str = "u") -> Item:
    return Item("s", uid, version, b"")


def held(version: str, uid: str = "u", gone: str = "") -> Held:
    return Held(1, uid, version, gone)


@pytest.mark.parametrize(
    ("item", "before", "news"),
    [
        pytest.param(put("5"), None, True, id="nothing was there"),
        pytest.param(put("5"), held("4"), True, id="newer"),
        pytest.param(put("5"), held("5"), False, id="an echo of the same version came first"),
        pytest.param(put("5"), held("6"), False, id="the past"),
        pytest.param(put("10"), held("9"), True, id="versions are numbers"),
        pytest.param(put("7", "v"), held("5"), True, id="another object of the name"),
        pytest.param(put("4", "v"), held("5"), False, id="an earlier object of the name"),
        pytest.param(put("9"), held("5", gone=DELETED), False, id="what is deleted never comes back"),
        pytest.param(put("9", "v"), held("5", gone=DELETED), True, id="its name may"),
        pytest.param(put("5"), held("5", gone=LEFT), True, id="back in the view unchanged"),
        pytest.param(put("4"), held("5", gone=LEFT), False, id="left the view later than this"),
        pytest.param(absent("6"), held("5"), True, id="gone"),
        pytest.param(absent("5"), held("5"), True, id="gone, at the last known version"),
        pytest.param(absent("5"), held("5", gone=LEFT), False, id="gone already"),
        pytest.param(absent("6"), None, False, id="was never there"),
        pytest.param(absent("6", "old"), held("8", "new"), False, id="the next one of the name is there already"),
        pytest.param(absent("9", "new"), held("5", "old"), True, id="an even older one is there"),
    ],
)
def test_is_news(item: Item, before: Held | None, news: bool) -> None:
    assert is_news(item, before) is news


def test_versions_that_are_no_numbers_can_only_differ() -> None:
    assert newer("b", "a") and newer("a", "b") and not newer("a", "a")
    assert not older("a", "b") and not older("", "5")
    assert older("9", "10") and newer("10", "9")


def test_reading_a_message() -> None:
    headers = {"K8s-UID": "u", "K8s-RV": "7", "Epoch": "3:4", "Observed-At": "1.5"}
    message = Message(subject="s", data=b"{}", headers=headers, seq=9, stored_at=Instant(2.0))
    assert held_by(message) == Held(9, "u", "7", "", Epoch(3, 4))
    tombstone = Message(subject="s", data=b"", headers={"Gone": "1", "K8s-UID": "u"}, seq=9, stored_at=Instant(2.0))
    assert held_by(tombstone).gone == DELETED
    presence = Message(subject="s", data=b"{}", headers={"Observed-At": "1.5"}, seq=9, stored_at=Instant(2.0))
    assert held_by(presence) == Held(9, "", "1500000")
    assert newer(time_version(1.6), held_by(presence).version)
