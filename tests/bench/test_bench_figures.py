"""What the benchmark makes of a measurement."""

import pytest
from figures import Figures, figures, last_line, medians, ratios, requests
from plot import steps, svg

RESULT = {
    "label": "raybus",
    "n": 2,
    "ready": 2,
    "clusters_per_s": 4.0,
    "created_to_ready": {"p50": 1.5, "p99": 2.0},
    "lastpodready_to_clusterready": {"p50": 0.1, "p99": 0.2},
    "cpu_s": [0.02, 0.01],
    "rss_mb_peak": 300.0,
    "requests": {"POST rayclusters 201": 2},
    "delete_s": 3.0,
}


def test_figures_of_one_run() -> None:
    assert figures(RESULT) == Figures(4.0, 1.5, 2.0, 0.1, 0.2, 15.0, 300.0, 0.0, 3.0)


def test_a_run_that_did_not_finish_has_no_figures() -> None:
    with pytest.raises(ValueError, match="only 1 of 2 clusters became ready"):
        figures({**RESULT, "ready": 1})


def test_only_requests_of_the_control_plane_count() -> None:
    counted = {
        "POST rayclusters 201": 10,  # the benchmark's own
        "PUT rayclusters/status 200": 20,
        "POST pods 201": 40,
        "POST services 201": 10,
        "POST events 201": 40 + 30,  # one for each pod is the scheduler's
        "PATCH pods/status 200": 40,
        "POST pods/binding 201": 40,
        "PUT leases 200": 9,
    }
    assert requests(counted, 10) == 20 + 40 + 10 + 30


def test_medians_and_ratios() -> None:
    fast, slow = Figures(*[1.0] * 9), Figures(*[4.0] * 9)
    assert medians([fast, slow, slow]) == slow
    assert ratios(fast, slow) == {
        "ratio_clusters_per_s": 0.25,
        "ratio_ready_p50": 0.25,
        "ratio_cpu": 0.25,
        "ratio_delete": 0.25,
    }


def test_last_line() -> None:
    line = last_line(figures(RESULT), {"ratio_cpu": 0.9})
    assert line == (
        "bench: clusters_per_s=4 ready_p50=1.5 ready_p99=2 lag_p50=0.1 lag_p99=0.2 cpu_ms_per_cluster=15 rss_mb=300 "
        "requests_per_cluster=0 ratio_cpu=0.9 delete_s=3"
    )


def test_plot_has_a_line_per_curve() -> None:
    picture = svg("a < b", {"raybus": steps([1.0, 0.5]), "kuberay-c10": steps([])})
    assert picture.count("<polyline") == 2 and "a &lt; b" in picture and "raybus" in picture
    assert steps([1.0, 0.5]) == [(0.0, 0.0), (0.5, 1.0), (1.0, 2.0)]
