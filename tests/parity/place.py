"""A real node that carries KubeRay's suite: the images that its tests name, and a node as large as they ask for."""

import shutil
import tempfile
from pathlib import Path

from raybus.dev.cluster import Cluster
from raybus.dev.images import ray
from raybus.dev.images.oci import ImageConfig, write_archive
from raybus.dev.kubectl import Kubectl
from raybus.dev.paths import cache_dir
from raybus.dev.progress import step
from raybus.dev.shell import run
from raybus.dev.site import NODE_NAME
from raybus.dev.waiting import wait_until

HERE = Path(__file__).resolve().parent
LIBRARY = "docker.io/library/redis:7.4"
TOOLS = "redis-server,redis-tools,curl,ca-certificates,procps"
SAME = {
    ray.IMAGE: [f"docker.io/rayproject/ray:{tag}" for tag in ("2.51.0", "2.52.0", "2.52.0-py310", "2.53.0")],
    LIBRARY: ["docker.io/library/redis:7.4.0", "docker.io/rancher/curl:latest", "docker.io/fluent/fluent-bit:3.2.2"],
}
"""Images that are the same under further names: nothing can be pulled, and no test looks at a version."""


def furnish(cluster: Cluster, kubectl: Kubectl) -> None:
    """Load the images and enlarge the node. Raises DevError when a program or a package is missing."""
    ctr = ("ctr", f"--address=/run/raybus/{cluster.name}/containerd.sock", "--namespace=k8s.io")
    if LIBRARY not in run(*ctr, "images", "ls", "-q").split():
        run(*ctr, "images", "import", str(_tools_image()))
    for name, others in SAME.items():
        for other in others:
            run(*ctr, "images", "tag", "--force", name, other)
    kubectl.apply(HERE / "admission.yaml")
    wait_until(lambda: _enlarged(kubectl), "the enlarged node", 60, cluster.folder / "run", ("kubelet",))


def _enlarged(kubectl: Kubectl) -> bool:
    """An update that changes nothing passes through admission as well."""
    kubectl("patch", "node", NODE_NAME, "--subresource=status", "--type=merge", "-p", '{"status":{"phase":""}}')
    return bool(kubectl.json("get", "node", NODE_NAME)["status"]["allocatable"]["cpu"] == "64")


def _tools_image() -> Path:
    """Debian with redis and curl, made once."""
    archive = cache_dir() / "images" / "parity-tools.tar"
    if not archive.exists():
        with step("making the image of redis and curl, only this once", 60), tempfile.TemporaryDirectory() as folder:
            rootfs = Path(folder)
            rootfs.chmod(0o755)
            run("debootstrap", "--variant=minbase", f"--include={TOOLS}", "bookworm", folder, ray.debian_mirror())
            for leftover in ("var/cache/apt/archives", "var/lib/apt/lists"):
                shutil.rmtree(rootfs / leftover)
            (rootfs / "data").mkdir(mode=0o777)
            path = ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            config = ImageConfig(cmd=("redis-server", "--protected-mode", "no"), env=(path,))
            write_archive(rootfs, archive, name=LIBRARY, config=config)
    return archive
