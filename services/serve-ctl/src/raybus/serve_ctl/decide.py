"""RayServices are not handled yet: each one is told so, and left alone. Pure."""

import msgspec
from msgspec import Struct

from raybus.api.decision import NOTHING, Decision, Note, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.api.v1 import ObjectMeta
from raybus.api.view import View

OUR_MANAGER = "ray.io/kuberay-operator"
_NEXT_STEP = "run it with KubeRay for now, and leave Raybus to RayClusters and RayJobs"


class ServeSpec(Struct, frozen=True, rename="camel"):
    """Who takes care of the RayService."""

    managed_by: str | None = None


class ServeView(Struct, frozen=True):
    """What is read of a RayService."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ServeSpec = msgspec.field(default_factory=ServeSpec)


class ServeKnobs(Struct, frozen=True):
    """Nothing to set yet."""


def gather(view: View) -> ServeView | None:
    """The RayService itself; None when it is not there."""
    root = view.get("rayservice", view.name)
    return root.value if root is not None and isinstance(root.value, ServeView) else None


def decide(view: ServeView, _now: Instant, _knobs: ServeKnobs) -> Decision:
    """One Warning per generation; the same decision for as long as nothing changes, so it is published once."""
    meta = view.metadata
    if view.spec.managed_by not in (None, "", OUR_MANAGER) or meta.deletion_timestamp is not None:
        return NOTHING
    text = f"RayService {meta.namespace}/{meta.name} is not handled yet (generation {meta.generation}): {_NEXT_STEP}"
    return Decision(
        notes=(Note(type="Warning", reason=Reason.NOT_SUPPORTED, action="Validate", text=text),),
        because=(Why(reason=Reason.NOT_SUPPORTED, text="RayService is not handled yet", next_step=_NEXT_STEP),),
    )
