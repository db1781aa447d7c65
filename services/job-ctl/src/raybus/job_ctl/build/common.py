"""What every child of a RayJob carries."""

from raybus.api.decision import Json
from raybus.api.v1 import API_VERSION
from raybus.job_ctl.gather import JobView


def owner(view: JobView) -> list[Json]:
    """Owner references that make the RayJob the controller of a child."""
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "RayJob",
            "name": view.name,
            "uid": view.meta.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
