"""What the rules of a RayJob look at, in Python and in CEL (ADR 0133)."""

from collections.abc import Callable
from typing import Any, NamedTuple

from raybus.api.cel import ray_version
from raybus.api.rules import Cel, Found, NotInCel, Rule
from raybus.api.v1 import RayClusterSpec, RayJob, RayJobSpec
from raybus.job_ctl.settings import JobKnobs

SPEC = "object.?spec"
HEAD_POD = f"{SPEC}.?rayClusterSpec.?headGroupSpec.?template.?spec"

VARIABLES = {
    "mode": f"{SPEC}.?submissionMode.orValue('')",
    "selector": f"{SPEC}.?clusterSelector.orValue({{}})",
    "backoffLimit": f"{SPEC}.?backoffLimit.orValue(0)",
    "shutdown": f"{SPEC}.?shutdownAfterJobFinishes.orValue(false)",
    "rayVersionText": f"{SPEC}.?rayClusterSpec.?rayVersion.orValue('')",
    "rayVersion": ray_version(f"{SPEC}.?rayClusterSpec.?rayVersion"),
    "head": f"{HEAD_POD}.?containers.orValue([])",
}


class Asked(NamedTuple):
    """A RayJob and the settings under which it is carried out."""

    job: RayJob
    knobs: JobKnobs

    @property
    def spec(self) -> RayJobSpec:
        """What the RayJob asks for."""
        return self.job.spec


def spec_rule(sentence: str, breaks: Callable[[Asked], Found], cel: Cel | NotInCel, about: str = "") -> Rule[Asked]:
    """A rule of the spec; all of their sentences begin alike."""
    return Rule(f"The RayJob spec is invalid: {sentence}", breaks, cel, about)


def head_pod(spec: RayClusterSpec | None) -> dict[str, Any]:
    """Pod spec of the head's template."""
    return (spec.head_group_spec.template.get("spec") or {}) if spec is not None else {}
