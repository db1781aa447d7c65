"""The Ray image: Debian with Python 3.11 and Ray from the machine's own package sources (ADR 0013).

It stands in for `rayproject/ray` on machines that reach no image registry: same user, same home, same entry points.
"""

import os
import platform
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

from raybus.dev.errors import DevError
from raybus.dev.images.oci import ImageConfig
from raybus.dev.shell import run

VERSION = "2.55.0"
IMAGE = f"docker.io/rayproject/ray:{VERSION}"
CONFIG = ImageConfig(
    user="1000:1000",
    workdir="/home/ray",
    cmd=("bash",),
    env=(
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/home/ray"),
        # Ray's dashboard starts ten processes at once and gives up, for good, on one that is not there after 30 s (60 s
        # for all): two busy cores need longer.
        ("RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "180"),
        ("RAY_DASHBOARD_STARTUP_TIMEOUT_S", "240"),
    ),
)

_SUITE = "bookworm"
_DEBIAN_PACKAGES = "python3-minimal,python3-venv,ca-certificates,wget,procps,iproute2"
_SITE_PACKAGES = "usr/local/lib/python3.11/dist-packages"
_COMMANDS = ("ray", "serve")


def recipe_text() -> str:
    """Everything that the image's content depends on: another text means another image."""
    return "\n".join(
        (_SUITE, _DEBIAN_PACKAGES, _requirements().read_text(encoding="utf-8"), Path(__file__).read_text())
    )


def fill(rootfs: Path) -> None:
    """Make the root file system. Raises `DevError` when a package source does not deliver."""
    run("debootstrap", "--variant=minbase", f"--include={_DEBIAN_PACKAGES}", _SUITE, str(rootfs), debian_mirror())
    for leftover in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(rootfs / leftover)
        (rootfs / leftover).mkdir()
    _install_ray(rootfs)
    (rootfs / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    run("chroot", str(rootfs), "useradd", "--create-home", "--uid", "1000", "--shell", "/bin/bash", "ray")
    _compile(rootfs)


def debian_mirror() -> str:
    """The address that this machine's apt is set up to use for Debian.

    Raises `DevError` when apt has no source of Debian.
    """
    for condition in (f"Codename: {_SUITE}", f"Release: {_SUITE}", "Origin: Debian"):
        listing = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", condition)
        if listing.strip():
            return listing.split()[0]
    raise DevError("The Ray image is made of Debian packages, but no source of this machine's apt is Debian: add one.")


def _install_ray(rootfs: Path) -> None:
    pip = shutil.which("pip3") or shutil.which("pip")
    if pip is None:
        raise DevError("pip is missing: it brings Ray into the Ray image (Debian package python3-pip).")
    target = rootfs / _SITE_PACKAGES
    target.mkdir(parents=True, exist_ok=True)
    with as_file(files("raybus.dev") / "images" / "ray-requirements.txt") as requirements:
        platforms = [f"--platform=manylinux{tag}_{platform.machine()}" for tag in ("2014", "_2_17", "_2_28", "_2_35")]
        flags = ["--quiet", "--no-compile", "--no-deps", "--python-version=3.11", "--only-binary=:all:", *platforms]
        done = subprocess.run(
            [pip, "install", *flags, f"--target={target}", f"--requirement={requirements}"],
            env=os.environ | {"PIP_ROOT_USER_ACTION": "ignore"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise DevError(f"pip could not install Ray {VERSION}: {done.stderr.strip()[-400:]}")
    for command in _COMMANDS:
        script = rootfs / "usr/local/bin" / command
        _, _, body = (target / "bin" / command).read_text().partition("\n")
        script.write_text(f"#!/usr/bin/python3\n{body}")
        script.chmod(0o755)


def _compile(rootfs: Path) -> None:
    """Byte code for all modules, used without looking at the source's time, which an image does not keep.

    Without it every Ray process compiles what it imports: 0.9 s of CPU for `import ray` instead of 0.4 s.
    """
    folders = [f"/{_SITE_PACKAGES}", "/usr/lib/python3.11", "/usr/lib/python3/dist-packages"]
    jobs = str(os.cpu_count() or 1)
    # Some packages ship test files that are wrong on purpose; compileall reports them by its exit status and goes on.
    compiler = ["python3", "-m", "compileall", "-q", "-j", jobs, "--invalidation-mode", "unchecked-hash", *folders]
    subprocess.run(["chroot", str(rootfs), *compiler], capture_output=True, check=False)
    if not any((rootfs / _SITE_PACKAGES / "ray" / "__pycache__").glob("*.pyc")):
        raise DevError("Compiling the Ray image left no byte code: is this machine able to run Debian's Python 3.11?")


def _requirements() -> Path:
    return Path(str(files("raybus.dev") / "images" / "ray-requirements.txt"))
