"""`raybus explain` with the words of a real kubelet and a real scheduler: object, cause, next step."""

import re
from collections.abc import Callable

import pytest
from bare_world import Json
from ray_world import SOON, RayWorld, head_only

NO_IMAGE = "127.0.0.1:1/none:1"
"""Nobody listens there: the kubelet learns at once that it cannot be pulled."""


def apply(world: RayWorld, kind: str, name: str, cluster: Json) -> str:
    """Make a RayCluster, or a RayJob that has it; returns the name of its head pod."""
    spec = cluster if kind == "RayCluster" else {"entrypoint": "python -c 1", "rayClusterSpec": cluster}
    world.apply({"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
    (pod,) = world.wait("the head", lambda: world.list("pods") or None)
    found: str = pod["metadata"]["name"]
    return found


def explained(world: RayWorld, raybus: Callable[..., str], target: str, cause: str) -> str:
    """The line of the answer that names `cause`, and what follows it."""
    answer = [""]

    def ask() -> str | None:
        answer[0] = raybus("explain", target, "-n", world.namespace)
        return answer[0] if cause in answer[0] else None

    try:
        text = world.wait(f"explain {target} says {cause}", ask, SOON)
    except AssertionError as error:
        raise AssertionError(f"{error}\nlast answer:\n{answer[0]}") from None
    return text[text.index(cause) :]


@pytest.mark.parametrize("kind", ["RayJob", "RayCluster"])
def test_image_that_cannot_be_pulled(world: RayWorld, raybus: Callable[..., str], kind: str) -> None:
    pod = apply(world, kind, "noimage", head_only(image=NO_IMAGE))
    text = explained(world, raybus, f"{kind.lower()}/noimage", "ImagePullFailed")
    line = text.splitlines()[0]
    assert pod in line and NO_IMAGE in line and ("ErrImagePull" in line or "ImagePullBackOff" in line), text
    assert re.search(r"next: .*image's name", text), text


@pytest.mark.parametrize("kind", ["RayJob", "RayCluster"])
def test_pod_that_fits_nowhere(world: RayWorld, raybus: Callable[..., str], kind: str) -> None:
    pod = apply(world, kind, "huge", head_only(cpu="500"))
    text = explained(world, raybus, f"{kind.lower()}/huge", "Unschedulable")
    line = text.splitlines()[0]
    assert pod in line and "0/1 nodes are available: 1 Insufficient cpu" in line, text
    assert re.search("next: .*nodes", text), text
