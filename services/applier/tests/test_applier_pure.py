"""Pure parts: how results change, what events look like, which version of an object is news."""

import msgspec
import pytest

from raybus.api.decision import Note, Ref
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_GONE, H_RV, H_UID, Drop, Refusal, Result, Root
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.applier import echo, events, record, results
from raybus.applier.results import Attempt
from raybus.bus.port import Message
from raybus.kube.objects import parse_object
from raybus.kube.port import Bug, KubeError, Rejected, Transient

ROOT = Root(kind="RayCluster", namespace="ns", name="c", uid="u1", resource_version="5")
POD = Ref("Pod", "ns", "p")
NOTE = Note(type="Normal", reason=Reason.CREATED_WORKER_POD, action="Create", text="Created worker Pod {names}")


def refusal(intent: str = "i", at: float = 100.0) -> Refusal:
    return results.refuse(intent, POD, "create", Rejected(403, "Forbidden", "POST /x: no"), Instant(at))


def merged(base: Result | None, attempt: Attempt, now: float = 100.0, drop: Drop | None = None) -> Result:
    return results.merge(base, "u1", attempt, drop, Instant(now))


def test_waits_between_attempts_double_up_to_five_minutes() -> None:
    result, waits = None, []
    for _ in range(8):
        result = merged(result, Attempt(current={"i"}, refused=(refusal(),)))
        waits.append(result.refusals[0].retry_at - result.refusals[0].at)
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]


def test_success_removes_the_earlier_refusal_and_leaves_the_others() -> None:
    base = merged(None, Attempt(current={"i", "k"}, refused=(refusal("i"), refusal("k"))))
    assert [r.intent for r in merged(base, Attempt(current={"i"}, done={"i"})).refusals] == ["k"]


def test_a_refusal_that_nobody_asks_for_any_more_goes_a_while_after_its_rest() -> None:
    base = merged(None, Attempt(current={"i"}, refused=(refusal("i"),)))
    assert merged(base, Attempt(), now=150.0).refusals
    assert not merged(base, Attempt(), now=166.0).refusals


def test_refusals_of_an_earlier_object_of_the_same_name_go() -> None:
    base = Result(root_uid="u0", refusals=(refusal(),))
    assert merged(base, Attempt()) == Result(root_uid="u1")


def test_a_second_unreadable_message_changes_nothing() -> None:
    def drop(at: float) -> Drop:
        return Drop(cause="invalid", at=Instant(at), view_seq=0)

    first = results.merge_invalid(None, drop(1))
    assert first.drop == drop(1)
    assert results.merge_invalid(first, drop(2)) is first
    assert merged(first, Attempt()).drop is None


def test_an_intent_rests_until_its_time() -> None:
    base = merged(None, Attempt(current={"i"}, refused=(refusal(),)))
    assert results.resting(base, "u1", "i", Instant(101)) == 4
    assert results.resting(base, "u1", "i", Instant(106)) == 0
    assert results.resting(base, "u2", "i", Instant(101)) == 0


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (Rejected(403, "Forbidden", ""), True),
        (Rejected(422, "Invalid", ""), True),
        (Rejected(401, "Unauthorized", ""), False),
        (Transient("", status=500), True),
        (Transient("", status=503), False),
        (Transient(""), False),
        (Bug(""), True),
    ],
)
def test_which_errors_are_refusals(error: KubeError, final: bool) -> None:
    assert results.is_final(error) is final


def test_an_event_is_what_the_api_accepts() -> None:
    note = events.about(NOTE, ["a", "b"])
    body = events.event(ROOT, note, "7", ("raycluster-controller", "applier-x"), Instant(1.5))
    assert body["note"] == "Created worker Pod a, b"
    assert body["eventTime"] == "1970-01-01T00:00:01.500000Z"
    assert body["regarding"]["uid"] == "u1" and body["reason"] == "CreatedWorkerPod" and body["action"] == "Create"
    assert body["metadata"]["namespace"] == "ns"


def test_the_same_note_of_the_same_decision_is_the_same_event() -> None:
    def name(key: str) -> str:
        body = events.event(ROOT, NOTE, key, ("c", "i"), Instant(1.0))
        return str(body["metadata"]["name"])

    assert name("7") == name("7") != name("8")


def test_a_long_name_leaves_room_for_the_hash() -> None:
    root = msgspec.structs.replace(ROOT, name="a" * 253)
    assert len(events.event(root, NOTE, "7", ("c", "i"), Instant(1.0))["metadata"]["name"]) <= 253


def test_many_names_are_counted_and_long_notes_cut() -> None:
    note = events.about(NOTE, [f"p{i}" for i in range(30)])
    assert note.text.endswith("and 22 more")
    assert len(events.shorten("é" * 2000).encode()) <= 1024


def stored(rv: str, uid: str = "a", *, gone: str | bool = False) -> Message:
    headers = {H_RV: rv, H_UID: uid} | ({H_GONE: "left" if gone == "left" else "1"} if gone else {})
    return Message(subject="s", data=b"" if gone else b"{}", headers=headers, seq=1, stored_at=Instant(0))


@pytest.mark.parametrize(
    ("last", "rv", "news"),
    [
        (None, "1", True),
        (stored("5"), "6", True),
        (stored("5"), "5", False),
        (stored("9"), "10", True),
        (stored("10"), "9", False),
        (stored("5", gone=True), "9", False),
        (stored("5", "b", gone=True), "9", True),
        (stored("5", gone="left"), "9", True),
        (stored("9", gone="left"), "5", False),
    ],
    ids=["empty", "newer", "equal", "longer number", "older", "own tombstone", "of another", "left", "left later"],
)
def test_who_gives_way(last: Message | None, rv: str, news: bool) -> None:
    assert echo.is_news(last, "a", rv) is news


def test_a_deletion_is_news_only_of_the_object_that_the_view_holds() -> None:
    assert echo.is_end(stored("5"), "a")
    assert not echo.is_end(stored("5", "b"), "a")
    assert not echo.is_end(stored("5", gone=True), "a")
    assert not echo.is_end(None, "a")


def test_a_cluster_made_for_a_job_is_in_both_views() -> None:
    raw = msgspec.json.encode({"metadata": {"name": "c", "namespace": "ns", "uid": "u"}})
    item = parse_object(raw, BY_KIND["RayCluster"])
    first, second = echo.views(("job", "ns", "j"), "RayCluster", item, "c")
    assert first.startswith("view.job.") and first.endswith(".ns.j.raycluster.c")
    assert second.startswith("view.cluster.") and second.endswith(".ns.c.raycluster.c")


def test_what_a_refusal_means_for_people() -> None:
    assert record.why(refusal()).reason is Reason.FORBIDDEN
    quota = msgspec.structs.replace(refusal(), message="pods is forbidden: exceeded quota: q")
    assert record.why(quota).reason is Reason.QUOTA_REFUSED
    taken = msgspec.structs.replace(refusal(), code=409, reason="name-taken")
    assert record.why(taken).reason is Reason.NAME_TAKEN


def test_the_timeline_quotes_no_field_values() -> None:
    message = 'Pod "p" is invalid: spec.containers[0].env[0].name: Invalid value: "s3cret": must be a name'
    assert "s3cret" not in record.without_values(message)
