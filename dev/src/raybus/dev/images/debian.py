"""Debian packages by name, unpacked without installing them."""

import subprocess
from pathlib import Path

from raybus.dev.errors import DevError
from raybus.dev.locks import exclusive
from raybus.dev.paths import cache_dir
from raybus.dev.shell import run


def unpack(packages: tuple[str, ...], into: Path) -> None:
    """Unpack the packages (not what they depend on) into a folder.

    They come from this machine's own package sources, whose signatures apt checks, and stay in the cache. Raises
    `DevError` when apt does not deliver one.
    """
    folder = cache_dir() / "debs"
    with exclusive(folder / ".lock", "downloading Debian packages"):
        for package in packages:
            if not _cached(folder, package):
                _download(folder, package)
            run("dpkg-deb", "--extract", str(_cached(folder, package)[0]), str(into))


def _cached(folder: Path, package: str) -> list[Path]:
    return sorted(folder.glob(f"{package}_*.deb"))


def _download(folder: Path, package: str) -> None:
    """First with apt's present lists; if those are empty or old, with lists of our own, which need no root."""
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    own = ("-o", f"Dir::State::Lists={lists}", "-o", "APT::Sandbox::User=root")
    if _apt(folder, "-o", "APT::Sandbox::User=root", "download", package) == "":
        return
    if trouble := (_apt(folder, *own, "update") or _apt(folder, *own, "download", package)):
        raise DevError(
            f"apt does not deliver the Debian 12 package {package}, of which the submitter's image is made: {trouble}"
        )


def _apt(folder: Path, *argv: str) -> str:
    """What apt-get had to complain about, "" if it did what it should."""
    try:
        done = subprocess.run(["apt-get", "-q", *argv], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise DevError("apt-get is missing: the submitter's image is made of Debian packages.") from None
    return "" if done.returncode == 0 else done.stderr.strip()[-400:] or f"exit status {done.returncode}"
