"""The list/watch step function, one input at a time."""

import msgspec
import pytest

from raybus.api.kinds import BY_KIND
from raybus.kube.port import KubeError, Rejected, Transient
from raybus.kube.watch import (
    CLIENT_TIMEOUT,
    UNSERVED_RETRY,
    Ended,
    Event,
    Gone,
    Input,
    Line,
    Next,
    Page,
    Phase,
    Put,
    Skipped,
    State,
    Synced,
    Target,
    Trouble,
    Unserved,
    begin,
    step,
)

PODS = Target(BY_KIND["Pod"], "ray.io/cluster")


def pod(name: str, version: str = "5", uid: str = "") -> dict[str, object]:
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"u-{name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}


def line(type_: str, obj: object) -> Line:
    return Line(msgspec.json.encode({"type": type_, "object": obj}))


def bookmark(version: str, *, end: bool = False) -> Line:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if end else {}
    return line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version} | annotations})


def page(*items: object, version: str = "9", token: str = "") -> Page:
    return Page(msgspec.json.encode({"metadata": {"resourceVersion": version, "continue": token}, "items": items}))


def run(*inputs: Input, state: State | None = None) -> tuple[list[Event], State, Next | None]:
    """Feed all inputs; the last request that was asked for, if any."""
    last: Next | None = None
    if state is None:
        state, last = begin(PODS)
    events: list[Event] = []
    for given in inputs:
        more, state, following = step(state, given)
        events += more
        last = following or last
    return events, state, last


def short(events: list[Event]) -> list[str]:
    """Events as words: `+name`, `-name@version`, or the class's name."""
    words = []
    for event in events:
        match event:
            case Put(obj):
                words.append(f"+{obj.meta.name}")
            case Gone(key, _, version):
                words.append(f"-{key[1]}@{version}")
            case _:
                words.append(type(event).__name__)
    return words


FILLED = (line("ADDED", pod("a")), line("ADDED", pod("b")), bookmark("7", end=True))


def test_the_first_request_streams_the_initial_state() -> None:
    _, first = begin(PODS)
    assert first.streamed and first.delay == 0.0
    assert first.request.path == "/api/v1/pods"
    assert first.request.query["sendInitialEvents"] == "true"
    assert first.request.query["labelSelector"] == "ray.io/cluster"
    assert "resourceVersion" not in first.request.query


def test_a_streamed_fill_ends_with_its_bookmark_and_goes_on_in_the_same_stream() -> None:
    events, state, _ = run(*FILLED)
    assert short(events) == ["+a", "+b", "Synced"]
    assert (state.phase, state.version) == (Phase.FOLLOW, "7")
    events, state, following = step(state, line("MODIFIED", pod("a", "8")))
    assert (short(events), state.version, following) == (["+a"], "8", None)


def test_a_deleted_object_is_gone_with_the_version_of_its_deletion() -> None:
    events, state, _ = run(*FILLED, line("DELETED", pod("a", "12")))
    assert short(events)[-1] == "-a@12"
    assert state.version == "12"


def test_a_stream_that_was_closed_resumes_at_the_last_version() -> None:
    _, _, following = run(*FILLED, line("MODIFIED", pod("a", "8")), bookmark("11"), Ended(50.0))
    assert following is not None and following.delay == 0.0
    assert following.request.query["resourceVersion"] == "11"
    assert "sendInitialEvents" not in following.request.query
    assert following.request.timeout == CLIENT_TIMEOUT > float(following.request.query["timeoutSeconds"])


def test_streams_closed_at_once_count_as_failures_with_growing_delays() -> None:
    _, state, _ = run(*FILLED)
    delays = []
    for _ in range(12):
        _, state, following = step(state, Ended(0.01))
        assert following is not None
        delays.append(following.delay)
    assert delays[:4] == [0.2, 0.4, 0.8, 1.6] and delays[-1] == 15.0
    _, state, following = step(state, Ended(30.0))
    assert following is not None and following.delay == 0.0


@pytest.mark.parametrize("code", [400, 422])
def test_a_server_without_watch_list_gets_paged_lists_at_once_and_for_good(code: int) -> None:
    refused = Ended(0.01, Rejected(code, "Invalid", "sendInitialEvents is forbidden"))
    events, state, following = run(refused)
    assert events == []
    assert following is not None and not following.streamed and following.delay == 0.0
    assert following.request.query == {"labelSelector": "ray.io/cluster", "limit": "500"}
    _, state, following = run(page(pod("a"), version="9"), Ended(5.0, Rejected(410, "Expired", "too old")), state=state)
    assert following is not None and not following.streamed


def test_a_paged_fill_follows_the_continue_tokens_and_watches_from_the_lists_version() -> None:
    refused = Ended(0.01, Rejected(422, "Invalid", ""))
    events, state, following = run(refused, page(pod("a"), token="more"))
    assert short(events) == ["+a"]
    assert following is not None and following.request.query["continue"] == "more"
    events, state, following = run(page(pod("b"), version="9"), state=state)
    assert short(events) == ["+b", "Synced"]
    assert following is not None and following.streamed and following.request.query["resourceVersion"] == "9"


def test_an_expired_page_begins_the_list_anew_and_nothing_looks_vanished() -> None:
    refused = Ended(0.01, Rejected(422, "Invalid", ""))
    events, _, following = run(
        refused,
        page(pod("a"), token="more"),
        Ended(0.1, Rejected(410, "Expired", "continue token")),
        page(pod("a"), pod("b")),
    )
    assert short(events) == ["+a", "+a", "+b", "Synced"]
    assert following is not None and following.streamed


def test_a_forgotten_version_lists_anew_and_reports_what_vanished_meanwhile() -> None:
    expired = line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    _, state, _ = run(*FILLED)
    events, state, following = run(expired, state=state)
    assert events == []
    assert following is not None and following.request.query["sendInitialEvents"] == "true"
    events, state, _ = run(line("ADDED", pod("b")), line("ADDED", pod("c")), bookmark("20", end=True), state=state)
    assert short(events) == ["+b", "+c", "-a@20", "Synced"]
    assert set(state.known) == {("ns", "b"), ("ns", "c")}


def test_an_object_that_came_back_under_its_name_is_put_not_gone() -> None:
    _, state, _ = run(*FILLED, Ended(3.0, Rejected(410, "Expired", "")))
    events, _, _ = run(
        line("ADDED", pod("a", "30", "u-new")), line("ADDED", pod("b")), bookmark("31", end=True), state=state
    )
    assert short(events) == ["+a", "+b", "Synced"]


def test_a_streamed_fill_that_does_not_finish_is_done_by_pages() -> None:
    cut = Ended(60.0, Transient("ended by us"))
    events, state, following = run(line("ADDED", pod("a")), cut)
    assert short(events) == ["+a", "Trouble"] and following is not None and following.streamed
    _, state, following = run(line("ADDED", pod("a")), cut, state=state)
    assert following is not None and not following.streamed


@pytest.mark.parametrize(
    ("error", "delay"),
    [
        (Transient("429", status=429, retry_after=7.0), 7.0),
        (Transient("no connection"), 0.2),
        (Rejected(403, "Forbidden", "pods is forbidden"), 0.2),
    ],
)
def test_a_failed_watch_says_so_and_resumes_after_a_delay(error: KubeError, delay: float) -> None:
    _, state, _ = run(*FILLED)
    events, _, following = step(state, Ended(0.0, error))
    assert short(events) == ["Trouble"]
    assert following is not None and following.delay == delay
    assert following.request.query["resourceVersion"] == "7"


def test_a_kind_that_is_not_served_is_looked_for_again_and_again() -> None:
    missing = Ended(0.01, Rejected(404, "NotFound", "the server could not find the requested resource"))
    events, state, following = run(missing)
    assert [type(event) for event in events] == [Unserved]
    assert following is not None and following.delay == UNSERVED_RETRY
    events, _, _ = run(missing, *FILLED, state=state)
    assert short(events) == ["Unserved", "+a", "+b", "Synced"]


def test_only_the_third_missing_answer_in_a_row_means_that_the_objects_are_gone() -> None:
    missing = Ended(0.01, Rejected(404, "NotFound", ""))
    _, state, _ = run(*FILLED)
    events, state, _ = run(missing, missing, state=state)
    assert short(events) == ["Unserved", "Unserved"]
    events, _, _ = run(missing, state=state)
    assert short(events) == ["-a@", "-b@", "Unserved"]


def test_an_unreadable_object_is_skipped_by_name_and_does_not_look_vanished() -> None:
    bad = {"kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "labels": 7}}
    _, state, _ = run(*FILLED, Ended(3.0, Rejected(410, "Expired", "")))
    events, state, _ = run(line("ADDED", bad), line("ADDED", pod("b")), bookmark("20", end=True), state=state)
    assert short(events) == ["Skipped", "+b", "Synced"]
    assert isinstance(events[0], Skipped) and "Pod ns/a" in events[0].text
    assert ("ns", "a") in state.known


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"type":"BOOKMARK","object":{}}', b"\xff"])
def test_a_line_that_is_no_event_leads_to_a_new_fill(data: bytes) -> None:
    _, state, _ = run(*FILLED)
    events, state, following = step(state, Line(data))
    assert [type(event) for event in events] == [Trouble]
    assert state.phase is Phase.STREAM_FILL and following is not None and following.delay > 0


def test_a_page_that_is_no_list_is_asked_for_again() -> None:
    events, state, following = run(Ended(0.01, Rejected(422, "Invalid", "")), Page(b"<html>"))
    assert short(events) == ["Trouble"] and state.phase is not Phase.FOLLOW
    assert following is not None and following.delay > 0


def test_one_namespace_only() -> None:
    _, first = begin(Target(BY_KIND["RayJob"], "", "team-a"))
    assert first.request.path == "/apis/ray.io/v1/namespaces/team-a/rayjobs"


def test_synced_is_said_once_per_fill() -> None:
    events, _, _ = run(*FILLED, bookmark("9"), bookmark("10", end=True))
    assert len([event for event in events if isinstance(event, Synced)]) == 1
