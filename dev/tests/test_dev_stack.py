"""One Raybus at a time on a cluster: whoever comes second is refused and leaves the first one alone."""

import fcntl
from pathlib import Path

import pytest

from raybus.dev.choice import Provider
from raybus.dev.cluster import Cluster
from raybus.dev.errors import DevError
from raybus.dev.stack import Stack, state_file


def test_second_raybus_is_refused_and_leaves_the_first_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cluster = Cluster("claimed", Provider.LOCAL, "https://127.0.0.1:1", real_node=False, kwok_nodes=0, bare=True)
    stack = Stack(cluster, cluster.folder / "stack")
    stack.folder.mkdir(parents=True)
    state_file(stack.folder).write_text("{}")
    with (cluster.folder / "raybus.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        first.write("4242")
        first.flush()
        with pytest.raises(DevError, match=r"runs already on the cluster claimed \(process 4242\): stop that first"):
            stack.start()
        stack.stop()
        assert state_file(stack.folder).exists()
