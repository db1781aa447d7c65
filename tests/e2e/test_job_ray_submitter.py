"""`--submitter ray`: KubeRay's way, the head's image with Ray's own command line."""

import re

import pytest
from ray_world import READY, RayWorld

PROGRAM = """
import ray

ray.init()
print(f"cpus {ray.cluster_resources()['CPU']:.0f}", flush=True)
"""


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    return {"RAYBUS_SUBMITTER": "ray"}


def test_rays_own_command_line_submits_and_follows(world: RayWorld) -> None:
    world.run("classic", PROGRAM)
    world.phase("classic", "Running", READY)
    status = world.phase("classic", "Complete", READY)
    assert status["jobStatus"] == "SUCCEEDED"
    (pod,) = world.submitters("classic")
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "rayproject/ray:2.55.0" and "ray job submit" in container["args"][0]
    log = world.log(pod["metadata"]["name"])
    assert re.search(r"^cpus 1$", log, re.MULTILINE) and f"Job '{status['jobId']}' succeeded" in log
    assert [known["submission_id"] for known in world.submissions("classic")] == [status["jobId"]]
