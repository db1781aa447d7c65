"""What the page of metrics says of RayClusters, line by line (contract platform §7.1)."""

import msgspec
import pytest

from raybus.api.times import Instant
from raybus.api.view import Entry
from raybus.cluster_ctl.gather import DECODERS
from raybus.cluster_ctl.gauges import GAUGES
from raybus.runtime.root_gauges import Kept, Shown, keep, readings
from raybus.telemetry.metrics import exposition, read_when_asked
from raybus.testkit import rayclusters as kit

LABELS = f'name="c",namespace="default",uid="{kit.CLUSTER_UID}"'
CREATED = "2026-01-01T00:00:00Z"


def conditions(provisioned: str, since: str) -> kit.Json:
    other = {"type": "HeadPodReady", "status": "True", "reason": "r", "message": "", "lastTransitionTime": since}
    return {"conditions": [other, {**other, "type": "RayClusterProvisioned", "status": provisioned}]}


def lines(*versions: kit.Json) -> list[str]:
    """The lines about one RayCluster that was seen in these versions."""
    kept: Kept = {}
    before: Entry | None = None
    for version in versions:
        value = DECODERS["raycluster"](msgspec.json.encode(version))
        entry = Entry(value=value, uid=version["metadata"]["uid"], observed_at=Instant(1.0))
        keep(GAUGES, kept, before, entry)
        before = entry
    assert before is not None
    shown = Shown("default", "c", before.uid, before.value, kept)
    with read_when_asked(lambda: readings(GAUGES, [shown])):
        return [line for line in exposition().decode().splitlines() if line.startswith("kuberay_")]


def cluster(status: kit.Json | None = None, spec: kit.Json | None = None, **metadata: object) -> kit.Json:
    return kit.raycluster("c", status=status, spec=spec, creationTimestamp=CREATED, **metadata)


STARTING = cluster(conditions("False", "2026-01-01T00:00:05Z"))
PROVISIONED = cluster(conditions("True", "2026-01-01T00:01:30Z"))
SUSPENDED = cluster(conditions("False", "2026-01-01T01:00:00Z"))
RESUMED = cluster(conditions("True", "2026-01-01T02:00:00Z"))
INFO = f'kuberay_cluster_info{{name="c",namespace="default",owner_kind="None",uid="{kit.CLUSTER_UID}"}} 1'


def state(condition: str) -> str:
    return f'kuberay_cluster_condition_provisioned{{condition="{condition}",{LABELS}}} 1'


def duration(seconds: float) -> str:
    return f"kuberay_cluster_provisioned_duration_seconds{{{LABELS}}} {seconds}"


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([cluster()], [INFO, state("false")]),
        ([STARTING], [INFO, state("false")]),
        ([STARTING, PROVISIONED], [INFO, state("true"), duration(90)]),
        # The page of a replica that has just taken the partition.
        ([PROVISIONED], [INFO, state("true"), duration(90)]),
        # A suspension leaves the duration; a resume counts from the creation.
        ([PROVISIONED, SUSPENDED], [INFO, state("false"), duration(90)]),
        ([PROVISIONED, SUSPENDED, RESUMED], [INFO, state("true"), duration(7200)]),
        # Without conditions there is nothing to tell it by; a time that is none is nobody's crash.
        ([cluster({"state": "ready"})], [INFO, state("false")]),
        ([cluster(conditions("True", "soon"))], [INFO, state("true")]),
        # What another controller runs is there, but its times are not ours.
        ([cluster(PROVISIONED["status"], {"managedBy": "kueue.x-k8s.io/multikueue"})], [INFO, state("true")]),
        (
            [cluster(PROVISIONED["status"], {"managedBy": "ray.io/kuberay-operator"})],
            [INFO, state("true"), duration(90)],
        ),
    ],
)
def test_lines_about_a_raycluster(versions: list[kit.Json], expected: list[str]) -> None:
    assert lines(*versions) == expected


@pytest.mark.parametrize("owner", ["RayJob", "RayService"])
def test_who_asked_for_the_cluster(owner: str) -> None:
    found = lines(cluster(labels={"ray.io/originated-from-crd": owner}))
    assert found[0] == INFO.replace("None", owner)
