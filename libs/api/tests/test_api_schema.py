"""Which version of a message is read, left for a later release, or dropped."""

import msgspec
import pytest

from raybus.api.messages import AskMessage, Fact, IntentMessage, Presence, Result, TimelineEntry
from raybus.api.reasons import Reason
from raybus.api.schema import H_SCHEMA, OURS, SCHEMA, Newer, Unreadable, admit, read

BODIES = (IntentMessage, AskMessage, Fact, Presence, Result, TimelineEntry)


@pytest.mark.parametrize("minor", [0, 1, 99])
def test_every_minor_version_of_our_major_is_read(minor: int) -> None:
    assert read({H_SCHEMA: f"{OURS.major}.{minor}"}, b"1", msgspec.json.decode) == 1


@pytest.mark.parametrize("text", ["", "1", "1.x", "-1.0", "1.0.0", "v1.0", "\u00b2.0", "1.\u0664"])
def test_what_is_no_version_is_dropped(text: str) -> None:
    with pytest.raises(Unreadable, match="no message version"):
        admit({H_SCHEMA: text} if text else {})


def test_another_major_version_is_waited_for_if_later_and_dropped_if_earlier() -> None:
    with pytest.raises(Newer, match="upgrade this service"):
        admit({H_SCHEMA: f"{OURS.major + 1}.0"})
    with pytest.raises(Unreadable, match="upgrade who wrote it"):
        admit({H_SCHEMA: f"{OURS.major - 1}.9"})


def test_what_cannot_be_decoded_is_waited_for_only_if_a_later_release_wrote_it() -> None:
    with pytest.raises(Newer):
        read({H_SCHEMA: f"{OURS.major}.{OURS.minor + 1}"}, b"[", msgspec.json.decode)
    with pytest.raises(Unreadable):
        read({H_SCHEMA: SCHEMA}, b"[", msgspec.json.decode)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_no_body_forbids_fields_that_it_does_not_know(body: type[msgspec.Struct]) -> None:
    assert not body.__struct_config__.forbid_unknown_fields
    assert not body.__struct_config__.array_like


def test_a_reason_of_a_later_release_is_passed_on_but_not_any_text() -> None:
    later = msgspec.json.decode(b'"InventedLater"', type=Reason)
    assert msgspec.json.encode(later) == b'"InventedLater"' and f"{later}" == "InventedLater"
    assert later not in set(Reason)
    for text in (b'"two words"', b'"small"', b'""', b"7", b'"' + b"A" * 200 + b'"'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=Reason)
