import pytest

from raybus.bus import jetstream as js
from raybus.bus.errors import ServerUnfit, StreamMismatch
from raybus.bus.streams import STREAMS, compare, refuse_old_server


@pytest.mark.parametrize(
    "reply",
    [
        "$JS.ACK.VIEW.name.1.42.7.1796072700082481820.3",
        "$JS.ACK._.hash.VIEW.name.1.42.7.1796072700082481820.3",
        "$JS.ACK.domain.hash.VIEW.name.1.42.7.1796072700082481820.3.token",
    ],
)
def test_the_reply_subject_of_a_delivery_in_each_of_its_forms(reply: str) -> None:
    assert js.delivery(reply) == js.Delivery(42, 7, 1796072700082481820, 3)


@pytest.mark.parametrize("reply", ["", "_INBOX.a.b", "$JS.ACK.VIEW.name.1.x.7.1.3"])
def test_other_subjects_are_no_deliveries(reply: str) -> None:
    with pytest.raises(ValueError):
        js.delivery(reply)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("2026-11-30T20:50:36.555036546Z", 1796071836_555036546),
    ],
)
def test_times_to_the_nanosecond(text: str, expected: int) -> None:
    assert js.nanoseconds(text) == expected


def test_headers_of_jetstream_are_not_the_messages_own() -> None:
    assert js.own_headers({js.TTL: "5", js.EXPECT_SUBJECT_SEQ: "0", "K8s-RV": "1"}) == {"K8s-RV": "1"}
    assert js.own_headers(None) == {}


def test_a_server_without_or_with_a_low_level_is_too_old() -> None:
    for level in (0, 1, 4):
        with pytest.raises(ServerUnfit, match="too old"):
            refuse_old_server(js.AccountInfo(api=js.ApiLevel(level)))
    refuse_old_server(js.AccountInfo(api=js.ApiLevel(5)))


def test_a_server_that_ignored_a_setting_is_found_out() -> None:
    returned = {key: value for key, value in STREAMS["VIEW"].items() if key != "allow_msg_ttl"}
    with pytest.raises(StreamMismatch, match="stream VIEW .*allow_msg_ttl is unset, needed is True"):
        compare("VIEW", STREAMS["VIEW"], returned)


def test_what_the_server_adds_is_left_alone() -> None:
    metadata = {**STREAMS["VIEW"]["metadata"], "_nats.ver": "2.15.1"}
    compare("VIEW", STREAMS["VIEW"], {**STREAMS["VIEW"], "metadata": metadata, "max_consumers": -1})
