"""serve-ctl tells each RayService that it is not handled yet, and does nothing else."""

from typing import Any

import msgspec
import pytest

from raybus.api.decision import NOTHING, Decision, Json
from raybus.api.times import Instant
from raybus.api.view import Entry, View
from raybus.serve_ctl.controller import controller


def decided(generation: int = 1, now: float = 0.0, spec: Json | None = None, meta: Json | None = None) -> Decision:
    serve = controller()
    metadata = {"name": "s", "namespace": "n", "uid": "u", "generation": generation, **(meta or {})}
    raw = msgspec.json.encode({"metadata": metadata, "spec": spec or {}})
    entry = Entry(value=serve.decoders["rayservice"](raw))
    view = View(controller="serve", namespace="n", name="s", entries={("rayservice", "s"): entry})
    gathered = serve.gather(view)
    assert gathered is not None
    return serve.decide(gathered, Instant(now), serve.knobs)


def test_a_rayservice_gets_one_warning_and_nothing_else() -> None:
    decision = decided()
    (note,) = decision.notes
    assert (note.type, note.reason) == ("Warning", "NotSupported")
    assert "n/s is not handled yet" in note.text
    assert decision == Decision(notes=decision.notes, because=decision.because)


def test_the_decision_stays_the_same_until_the_generation_changes() -> None:
    assert decided(now=1.0) == decided(now=9.0)
    assert decided(generation=2).notes != decided(generation=1).notes


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, id="managed by another"),
        pytest.param({"meta": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="being deleted"),
    ],
)
def test_it_says_nothing_about_a_rayservice(fields: dict[str, Any]) -> None:
    assert decided(**fields) == NOTHING


def test_a_view_without_the_rayservice_is_not_decided() -> None:
    assert controller().gather(View(controller="serve", namespace="n", name="s", entries={})) is None
