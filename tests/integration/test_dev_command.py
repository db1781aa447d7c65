"""`raybus dev` as a user runs it: all services ready, replicas share the work, Ctrl-C ends everything."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from processes import http_get

from raybus.dev.cluster import Cluster
from raybus.dev.locks import exclusive


def health_ports(folder: Path, service: str) -> dict[str, int]:
    """Process -> port of its health listener, as its log says."""
    ports = {}
    for path in folder.glob(f"{service}*.log"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if record["event"] == "listening for health and metrics":
                ports[path.stem] = record["address"][1]
    return ports


def owned(port: int) -> int:
    """How many partitions the process at that port says it owns."""
    _, text = http_get(port, "/metrics")
    values = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("raybus_partitions_owned{")]
    return int(float(values[0])) if values else 0


def test_three_replicas_of_a_controller_divide_the_partitions(bare_cluster: Cluster) -> None:
    command = [sys.executable, "-m", "raybus.cli", "dev", "--cluster", bare_cluster.name, "--replicas", "cluster-ctl=3"]
    with exclusive(bare_cluster.folder / "tests.lock", "testing Raybus on this cluster"):
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(running.stdout or ()), daemon=True)
        reader.start()
        try:
            shares: list[int] = []
            deadline = time.monotonic() + 60
            while sum(shares) < 16 or 0 in shares or not any("all services are ready" in line for line in said):
                assert time.monotonic() < deadline and running.poll() is None, f"{shares} {''.join(said)}"
                ports = health_ports(bare_cluster.folder / "stack", "cluster-ctl")
                shares = [owned(port) for port in ports.values()]
                time.sleep(0.2)
            assert len(shares) == 3 and sum(shares) == 16
        finally:
            running.send_signal(signal.SIGINT)
            status = running.wait(30)
    assert status == 0, "".join(said)
    assert "The bus is nats://" in said[0]
    assert any("cluster-ctl-2" in line for line in said)
