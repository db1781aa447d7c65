"""Requests as bytes, errors by answer, objects without managedFields."""

import msgspec
import pytest

from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND
from raybus.kube import request, write
from raybus.kube.errors import MAX_TEXT, of_answer
from raybus.kube.objects import key_of, parse_object
from raybus.kube.port import Bug, Rejected, Request, Transient

JOB = Ref("RayJob", "ns", "train")


def body(made: Request) -> object:
    return msgspec.json.decode(made.body)


def test_paths_of_core_and_named_groups() -> None:
    assert request.get(Ref("Pod", "ns", "p")).path == "/api/v1/namespaces/ns/pods/p"
    assert request.path(BY_KIND["Job"]) == "/apis/batch/v1/jobs"
    assert request.path_of(JOB, "status") == "/apis/ray.io/v1/namespaces/ns/rayjobs/train/status"
    assert request.get(Ref("Pod", "ns", "a/../b")).path.endswith("/pods/a%2F..%2Fb")
    assert request.resources("ray.io", "v1").path == "/apis/ray.io/v1"
    assert request.resources("", "v1").path == "/api/v1"


def test_create_posts_the_bytes_as_they_are() -> None:
    made = write.create("Pod", "ns", b'{"kind":"Pod"}')
    assert (made.method, made.path, made.body) == ("POST", "/api/v1/namespaces/ns/pods", b'{"kind":"Pod"}')
    assert made.query["fieldManager"] == "raybus"


def test_delete_names_the_uid() -> None:
    made = write.delete(Ref("Pod", "ns", "p"), "u1", "Foreground")
    assert made.method == "DELETE"
    assert body(made) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u1"},
        "propagationPolicy": "Foreground",
    }


def test_a_status_is_replaced_at_one_version_with_a_minimal_body() -> None:
    made = write.put_status(JOB, "u1", "42", {"jobStatus": "RUNNING"})
    assert (made.method, made.path) == ("PUT", "/apis/ray.io/v1/namespaces/ns/rayjobs/train/status")
    assert body(made) == {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "train", "namespace": "ns", "uid": "u1", "resourceVersion": "42"},
        "status": {"jobStatus": "RUNNING"},
    }


def test_patches_are_guarded_by_uid_and_version() -> None:
    made = write.json_patch(JOB, "u1", "42", ({"op": "replace", "path": "/spec/suspend", "value": True},))
    assert made.content_type == "application/json-patch+json"
    assert body(made) == [
        {"op": "replace", "path": "/metadata/uid", "value": "u1"},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "42"},
        {"op": "replace", "path": "/spec/suspend", "value": True},
    ]
    made = write.merge_patch(JOB, "u1", "42", {"metadata": {"finalizers": ["x"]}})
    assert made.content_type == "application/merge-patch+json"
    assert body(made) == {"metadata": {"finalizers": ["x"], "uid": "u1", "resourceVersion": "42"}}


def test_apply_is_complete_without_the_caller_naming_the_object_again() -> None:
    made = write.apply(Ref("Service", "ns", "svc"), {"metadata": {"labels": {"a": "b"}}, "spec": {}})
    assert made.content_type == "application/apply-patch+yaml" and made.query["force"] == "true"
    assert body(made) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"labels": {"a": "b"}, "name": "svc", "namespace": "ns"},
        "spec": {},
    }


def status(reason: str, message: str = "no", **more: object) -> bytes:
    return msgspec.json.encode({"kind": "Status", "reason": reason, "message": message, **more})


POST = Request(method="POST", path="/p")
PUT = Request(method="PUT", path="/p")


@pytest.mark.parametrize(
    ("sent", "code", "answer", "family"),
    [
        pytest.param(POST, 409, status("AlreadyExists"), Rejected, id="a taken name is final"),
        pytest.param(POST, 409, status("Conflict"), Transient, id="a create that met a busy quota may work next time"),
        pytest.param(PUT, 409, status("Conflict"), Rejected, id="a write at an old version is final"),
        pytest.param(write.delete(JOB, "u"), 409, status("Conflict"), Rejected, id="another UID is final"),
        pytest.param(write.merge_patch(JOB, "u", "1", {}), 409, status("Conflict"), Rejected, id="so is a patch"),
        pytest.param(POST, 403, status("Forbidden"), Rejected, id="forbidden"),
        pytest.param(POST, 422, status("Invalid"), Rejected, id="invalid"),
        pytest.param(POST, 404, b"404 page not found", Rejected, id="not found without a Status"),
        pytest.param(POST, 429, status("TooManyRequests"), Transient, id="throttled"),
        pytest.param(POST, 500, status("InternalError"), Transient, id="internal error"),
        pytest.param(POST, 503, b"", Transient, id="unavailable without a body"),
        pytest.param(POST, 405, status("MethodNotAllowed"), Bug, id="a request that should not be"),
        pytest.param(POST, 302, b"", Bug, id="a redirect"),
    ],
)
def test_error_families(sent: Request, code: int, answer: bytes, family: type[Exception]) -> None:
    error = of_answer(sent, code, answer)
    assert type(error) is family
    assert str(error).startswith(f"{sent.method} {sent.path}: ")


def test_transient_answers_say_when_to_come_back_and_whether_they_had_an_effect() -> None:
    throttled = of_answer(POST, 429, status("TooManyRequests"), "3")
    assert isinstance(throttled, Transient) and (throttled.retry_after, throttled.sent) == (3.0, False)
    busy = of_answer(POST, 504, status("Timeout", details={"retryAfterSeconds": 2}))
    assert isinstance(busy, Transient) and (busy.retry_after, busy.sent, busy.status) == (2.0, True, 504)


def test_long_messages_are_cut_to_one_line() -> None:
    error = of_answer(POST, 422, status("Invalid", "line\n" * 10_000))
    assert "\n" not in str(error) and len(str(error)) < MAX_TEXT + 50 and str(error).endswith("…")


def test_an_object_loses_its_managed_fields_and_nothing_else() -> None:
    raw = (
        b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns","uid":"u","resourceVersion":"3",'
        b'"managedFields":[{"manager":"kubelet"}],"labels":{"a":"b"},'
        b'"ownerReferences":[{"apiVersion":"ray.io/v1","kind":"RayCluster","name":"c","uid":"cu","controller":true}]},'
        b'"spec":{"x":1.0,"y":"\\u00e4"}}'
    )
    found = parse_object(raw, BY_KIND["Pod"])
    assert found.raw == raw.replace(b'"managedFields":[{"manager":"kubelet"}],', b"")
    assert found.key == ("ns", "p") and found.meta.labels == {"a": "b"}
    assert found.meta.controller is not None and found.meta.controller.name == "c"


def test_an_item_of_a_list_has_the_bytes_it_has_in_a_watch() -> None:
    item = b'{"metadata":{"name":"p"},"spec":{}}'
    assert parse_object(item, BY_KIND["Pod"]).raw == b'{"kind":"Pod","apiVersion":"v1",' + item[1:]


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"metadata":{}}', b'{"metadata":[]}', b'{"metadata":{"name":5}}'])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        parse_object(raw, BY_KIND["Pod"])


def test_the_name_of_an_unreadable_object() -> None:
    assert key_of(b'{"metadata":{"name":"p","namespace":"ns","labels":3}}') == ("ns", "p")
    assert key_of(b"nonsense") == ("?", "?")
