"""Whether a storm in one namespace, or one huge cluster, holds up others (issue "Fairness")."""

import json
import time
from pathlib import Path
from typing import Any

from planes import Plane
from runs import Fleet, begin, finish, remove_namespaces
from say import say

from raybus.dev.cluster import Cluster

STORM = Fleet(n=500, namespace="storm", delete=False)
SINGLES = Fleet(n=12, rate=0.5, namespace="single", delete=False)
HUGE = Fleet(n=1, workers=500, namespace="storm", delete=False, prefix="huge")
SMALL = Fleet(n=20, rate=4, namespace="storm", delete=False, prefix="small")
LEAD = 3.0
"""Seconds by which the storm is ahead."""


def measure(cluster: Cluster, plane: Plane, out: Path) -> str:
    """Single clusters during a storm in another namespace; small clusters beside a huge one in the same."""
    single = _beside(cluster, plane, STORM, SINGLES, out)
    small = _beside(cluster, plane, HUGE, SMALL, out)
    say(json.dumps({"single during a storm": single, "small beside a huge one": small}, indent=1))
    return (
        f"bench: single_ready_p50={single['p50']} single_ready_max={single['max']} "
        f"small_ready_p50={small['p50']} small_ready_max={small['max']}"
    )


def _beside(cluster: Cluster, plane: Plane, load: Fleet, others: Fleet, out: Path) -> dict[str, Any]:
    """created_to_ready of `others` while `load` is under way."""
    files = out / f"fair-{load.prefix}-load.json", out / f"fair-{load.prefix}.json"
    loading = begin(cluster, plane, load, files[0])
    time.sleep(LEAD)
    result = finish(begin(cluster, plane, others, files[1]), plane, files[1])
    finish(loading, plane, files[0])
    remove_namespaces(cluster, load.namespace, others.namespace)
    found: dict[str, Any] = result["created_to_ready"]
    return found
