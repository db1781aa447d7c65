"""What Raybus costs when nothing happens, and how long one cluster takes then."""

import json
import time
from pathlib import Path

from planes import Plane
from procs import measured
from runs import Fleet, remove_namespaces, run, shown
from say import say

from raybus.dev.cluster import Cluster

SETTLE, SECONDS = 5.0, 30.0


def measure(cluster: Cluster, plane: Plane, out: Path) -> str:
    """Memory and CPU of each process over half a minute without events, then 20 clusters at one a second."""
    time.sleep(SETTLE)
    with measured(plane.pids) as cost:
        time.sleep(SECONDS)
    for name in plane.pids:
        say(f"{name:12} rss {cost.rss_mb[name]:6.1f} MB   cpu {cost.cpu_s[name] / cost.wall_s * 100:5.2f} %")
    result = run(cluster, plane, Fleet(n=20, rate=1), out)
    remove_namespaces(cluster, "bench")
    say(shown(result))
    percent = cost.cpu_total_s / cost.wall_s * 100
    out.write_text(json.dumps({"rss_mb": cost.rss_mb, "cpu_s": cost.cpu_s, "wall_s": cost.wall_s, "fleet": result}))
    first, ready = result["created_to_first_pod"]["p50"], result["created_to_ready"]["p50"]
    return (
        f"bench: idle_rss_mb={sum(cost.rss_mb.values()):.1f} idle_cpu_percent={percent:.2f} "
        f"first_pod_ms={first * 1000:.0f} ready_ms={ready * 1000:.0f}"
    )
