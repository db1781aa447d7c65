"""The real node: pods run, find each other by name and can be looked at; `down` leaves nothing of it behind."""

import json
import shutil
import subprocess
from pathlib import Path

from raybus.dev.cluster import Cluster, ClusterOptions, down, up
from raybus.dev.gotools import ensure_tools

NAME = "e2e-node"
PODS = """
apiVersion: v1
kind: Service
metadata: {name: greeter}
spec: {selector: {app: greeter}, ports: [{port: 80, targetPort: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: greeter, labels: {app: greeter}}
spec:
  containers:
    - name: main
      image: rayproject/ray:2.55.0
      command: [bash, -c, "cd; echo hello from $(hostname) >index.html; exec python -m http.server"]
      readinessProbe: {exec: {command: [bash, -c, "wget -q -O- http://localhost:8000"]}, periodSeconds: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: asker}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: rayproject/ray:2.55.0
      command: [bash, -c, "until wget -q -T 2 -O- http://greeter.default.svc.cluster.local; do sleep 0.5; done"]
"""


def kubectl(cluster: Cluster, *arguments: str, stdin: str | None = None) -> str:
    argv = [str(ensure_tools(["kubectl"])["kubectl"]), f"--kubeconfig={cluster.kubeconfig}", *arguments]
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def traces(link: str) -> set[str]:
    """What the node could leave behind: processes, mounts, its link and routes, files and control groups."""
    found = {f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines() if f"/{NAME}/" in line}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if f"/{NAME}/" in command:
            found.add(f"process {command}")
    for listing in (["-brief", "link"], ["route"]):
        output = subprocess.run(["ip", *listing], capture_output=True, text=True, check=True).stdout
        found |= {line.strip() for line in output.splitlines() if link in line.replace("@", " ").split()}
    found |= {str(path) for path in Path("/var/log/containers").glob("*") if f"/{NAME}/" in str(path.readlink())}
    own = (f"/run/netns/raybus-{NAME}", f"/run/raybus/{NAME}")
    found |= {path for path in own if Path(path).exists()}
    found |= {str(path) for path in Path("/var/lib/cni/results").glob(f"raybus-{NAME}-*")}
    return found | {str(path) for path in Path("/sys/fs/cgroup").glob(f"**/raybus-{NAME}")}


def test_a_node_works_and_leaves_nothing() -> None:
    cluster = up(ClusterOptions(name=NAME, real_node=True))
    link = f"raybus{json.loads((cluster.folder / 'cluster.json').read_text())['network_index']}"
    try:
        assert cluster.real_node
        assert {"containerd", "kubelet", "kube-proxy", "coredns"} <= cluster.pids.keys()
        kubectl(cluster, "apply", "-f", "-", stdin=PODS)
        kubectl(cluster, "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s", "pod/asker")
        assert kubectl(cluster, "logs", "asker").strip() == "hello from greeter"
        assert kubectl(cluster, "exec", "greeter", "--", "id", "-un").strip() == "ray"
        kinds = ("process", "mount", link, "10.", "/var/log", "/run/netns", "/run/raybus", "/var/lib/cni", "/sys/fs")
        seen = traces(link)
        assert not [kind for kind in kinds if not any(trace.startswith(kind) for trace in seen)]
    finally:
        down(NAME)
        left = traces(link)
        shutil.rmtree(cluster.folder, ignore_errors=True)
    assert left == set()
