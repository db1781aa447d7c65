"""Whether a new decision says anything that the published one did not."""

from raybus.api.decision import Create, CreatePods, Note, PodSlot, Ref
from raybus.api.messages import AskMessage, Drop, IntentMessage, Result, Root
from raybus.api.reasons import Reason
from raybus.api.subjects import RESULT
from raybus.api.times import Instant
from raybus.api.view import Entry
from raybus.runtime.cache import RootState
from raybus.runtime.compose import Composed
from raybus.runtime.sent import UNDER_WAY, Sent, news

ROOT = Root(kind="RayCluster", namespace="ns", name="c", uid="u", resource_version="1", generation=1)
SERVICE = Create(ref=Ref("Service", "ns", "c-head-svc"), body={})


def pods(*names: str, image: str = "ray") -> CreatePods:
    return CreatePods(namespace="ns", template={"image": image}, slots=tuple(PodSlot(name=name) for name in names))


def composed(*intents: object, **more: object) -> Composed:
    message = IntentMessage(root=ROOT, intents=intents, **more)  # type: ignore[arg-type]  # short cases
    return Composed(message if intents or more else None, AskMessage(root=ROOT), None)


def after(*intents: object, **more: object) -> tuple[Sent, RootState]:
    """What is remembered after this decision was published at 0.0, on a view of sequence 10."""
    sent, state = Sent(at_seq=0), RootState(entries={})
    assert news(sent, state, composed(*intents, **more), 0.0)[0] is not None
    sent.at_seq, sent.generation, state.object_seq = 10, 1, 10
    return sent, state


def test_the_rest_of_what_is_being_carried_out_is_no_news() -> None:
    sent, state = after(SERVICE, pods("a", "b"))
    state.object_seq = 11
    assert news(sent, state, composed(pods("a", "b")), 1.0) == (None, UNDER_WAY)
    assert news(sent, state, composed(pods("b")), 2.0) == (None, UNDER_WAY), "each progress is waited for anew"
    assert news(sent, state, composed(pods("b")), 4.0) == (None, UNDER_WAY - 2.0)


def test_the_rest_comes_again_when_nothing_moves() -> None:
    sent, state = after(SERVICE, pods("a", "b"))
    state.object_seq = 11
    news(sent, state, composed(pods("b")), 1.0)
    assert news(sent, state, composed(pods("b")), 1.0 + UNDER_WAY)[0] == composed(pods("b")).intent


def test_the_same_again_after_a_change_is_news_at_once() -> None:
    sent, state = after(pods("a", "b"))
    assert news(sent, state, composed(pods("a", "b")), 1.0) == (None, 0.0)
    state.object_seq = 11
    assert news(sent, state, composed(pods("a", "b")), 1.0)[0] is not None


def test_what_goes_beyond_the_rest_is_news() -> None:
    for more in (
        composed(pods("a", "c")),
        composed(pods("a", image="other")),
        composed(pods("a"), status={}),
        composed(pods("a"), notes=(Note(type="Normal", reason=Reason.STARTED, action="x", text="y"),)),
        composed(Create(ref=Ref("Service", "ns", "other"), body={})),
    ):
        sent, state = after(SERVICE, pods("a", "b"))
        assert news(sent, state, more, 1.0)[0] == more.intent


def test_an_answer_of_the_applier_makes_the_rest_news() -> None:
    sent, state = after(SERVICE, pods("a", "b"))
    dropped = Result(root_uid="u", drop=Drop(cause="epoch", at=Instant(1.0), view_seq=10))
    state.entries[RESULT, "applier"] = Entry(
        value=dropped, uid="", resource_version="", seq=11, observed_at=Instant(1.0), gone=False
    )
    assert news(sent, state, composed(pods("b")), 1.0)[0] is not None
