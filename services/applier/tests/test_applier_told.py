"""Which note is told of a refused create."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from raybus.api.decision import Create, Note, Ref
from raybus.api.reasons import Reason
from raybus.applier.aftermath import notes
from raybus.applier.carry import Run
from raybus.applier.intents import Outcome
from raybus.applier.results import NAME_TAKEN
from raybus.kube.port import Rejected

REF = Ref("NetworkPolicy", "ns", "c-head")


JOB = cast(Any, SimpleNamespace(view_seq=7))


def warning(reason: Reason) -> Note:
    return Note(type="Warning", reason=reason, action="Create", text="no")


@pytest.mark.parametrize(
    ("with_own", "answer", "expected"),
    [
        (True, NAME_TAKEN, Reason.NETWORK_POLICY_NAME_COLLISION),
        (True, "Forbidden", Reason.FAILED_TO_CREATE_NETWORK_POLICY),
        (False, NAME_TAKEN, Reason.FAILED_TO_CREATE_NETWORK_POLICY),
    ],
)
def test_a_taken_name_may_have_a_note_of_its_own(with_own: bool, answer: str, expected: Reason) -> None:
    taken = warning(Reason.NETWORK_POLICY_NAME_COLLISION) if with_own else None
    intent = Create(ref=REF, body={}, failed=warning(Reason.FAILED_TO_CREATE_NETWORK_POLICY), taken=taken)
    refused = Outcome(intent=intent, key="k", refused=(REF, Rejected(409, answer, "POST /x: it is so")))
    told = list(notes(Run(JOB, cast(Any, None), {}, outcomes=[refused])))
    assert [(one.note.reason, one.note.text) for one in told] == [(expected, "no: it is so")]
