"""Kubernetes and its companions, built from Go modules (ADR 0010).

Versions and check sums stand in `gomod/<module>/go.mod` and `go.sum`. A binary lies under
`tools/<module>-<hash of these files>/`, so another version never overwrites the one a running cluster uses.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from raybus.dev.errors import DevError
from raybus.dev.locks import exclusive
from raybus.dev.paths import cache_dir
from raybus.dev.progress import step

KUBERNETES_VERSION = "1.36.2"


@dataclass(frozen=True)
class Tool:
    """One program: the pinned module folder, the package in it, and seconds of a first build on two cores."""

    module: str
    package: str
    version: str
    build_s: int


def _kubernetes(command: str, build_s: int) -> Tool:
    return Tool("kubernetes", f"k8s.io/kubernetes/cmd/{command}", KUBERNETES_VERSION, build_s)


TOOLS = {
    "etcd": Tool("kubernetes", "go.etcd.io/etcd/server/v3", "3.6.8", 35),
    "kube-apiserver": _kubernetes("kube-apiserver", 150),
    "kube-controller-manager": _kubernetes("kube-controller-manager", 55),
    "kubectl": _kubernetes("kubectl", 20),
    "kube-scheduler": _kubernetes("kube-scheduler", 10),
    "kubelet": _kubernetes("kubelet", 25),
    "kube-proxy": _kubernetes("kube-proxy", 10),
    "coredns": Tool("coredns", ".", "1.14.7", 40),
    "kwok": Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", "0.8.0", 55),
    "pause": Tool("pause", ".", "1", 5),
}


def ensure_tools(names: Iterable[str]) -> dict[str, Path]:
    """Paths of the named programs, building what is not there yet.

    Raises `DevError` when Go is missing or a build fails.
    """
    return {name: _ensure(name, TOOLS[name]) for name in names}


def module_documents(module: str, path: str, patterns: Iterable[str]) -> Path:
    """One YAML file with all documents that match `patterns` in the Go module `path`, as required by `gomod/<module>`.

    Go checks the download against go.sum. Raises `DevError` when Go is missing or the download fails.
    """
    with as_file(files("raybus.dev") / "gomod" / module) as folder:
        target = cache_dir() / "tools" / f"{module}-{_recipe_hash(folder)}" / f"{path.replace('/', '_')}.yaml"
        if not target.exists():
            with step(f"downloading {path} as a Go module"):
                source = Path(json.loads(_go(folder, ["mod", "download", "-json", path], f"downloading {path}"))["Dir"])
            texts = [file.read_text() for pattern in patterns for file in sorted(source.glob(pattern))]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n---\n".join(texts))
    return target


def _ensure(name: str, tool: Tool) -> Path:
    with as_file(files("raybus.dev") / "gomod" / tool.module) as folder:
        target = cache_dir() / "tools" / f"{tool.module}-{_recipe_hash(folder)}" / name
        if target.exists():
            return target
        with exclusive(cache_dir() / "tools" / f"{tool.module}.lock", f"building {tool.module}"):
            if not target.exists():
                with step(f"building {name} {tool.version} from Go modules, only this once", tool.build_s):
                    _build(folder, tool, target)
    return target


def _build(folder: Path, tool: Tool, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}")
    _go(
        folder,
        ["build", "-ldflags", linker_flags(tool), "-o", str(unfinished), tool.package],
        f"building {tool.package}",
    )
    unfinished.replace(target)


def linker_flags(tool: Tool) -> str:
    """Flags of the Go linker: no debug information, and for Kubernetes the version that it reports."""
    if not tool.package.startswith("k8s.io/kubernetes/"):
        return "-s -w"
    major, minor, _ = tool.version.split(".")
    variable = "k8s.io/component-base/version.git"
    return f"-s -w -X {variable}Version=v{tool.version} -X {variable}Major={major} -X {variable}Minor={minor}"


def _recipe_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in {".mod", ".sum", ".go"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:8]


def _go(folder: Path, arguments: list[str], doing: str) -> str:
    """Standard output of one `go` command in `folder`, at low priority: a build must not stop the machine."""
    go = shutil.which("go")
    if go is None:
        raise DevError(
            "Go is missing: the development cluster builds Kubernetes from Go modules. Install Go 1.26 or newer "
            "(Debian package golang-go where it is new enough) and try again."
        )
    environment = os.environ | {
        "CGO_ENABLED": "0",
        "GOWORK": "off",
        "GOFLAGS": "-trimpath -buildvcs=false -mod=readonly",
    }
    done = subprocess.run(
        ["nice", "-n", "10", go, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise DevError(f"{doing} failed: {_last_lines(done.stderr)}")
    return done.stdout


def _last_lines(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if not re.match(r"go: downloading ", line)]
    return " / ".join(lines[-4:]) or "go printed nothing"
