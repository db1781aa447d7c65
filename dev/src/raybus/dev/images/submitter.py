"""The submitter's image: Debian's Python 3.11 cut down to what the submitter imports, from nothing else (ADR 0027).

No shell, no package manager, byte code only, not root. It has the same entry, user and working folder as KubeRay's
(contract rayjob §4), so that it can take its place in a submitterPodTemplate.
"""

import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from raybus.dev.errors import DevError
from raybus.dev.images import debian
from raybus.dev.images.oci import ImageConfig, ImageSize, write_archive
from raybus.dev.progress import say
from raybus.dev.shell import run

IMAGE = "docker.io/raybus/submitter:0.1.0"
CONFIG = ImageConfig(user="65532:65532", workdir="/", entrypoint=("/submitter",))
LIMIT = 10_000_000
"""Bytes that the image's layers may have, compressed with gzip."""

_PROGRAM = "raybus.submitter"
# Imported by the standard library only when they are needed: help texts (shutil), host names (idna), and text in the
# encodings that http.client, ssl and the "C" locale use.
_LAZY = ("shutil", "encodings.idna", "encodings.ascii", "encodings.latin_1", "encodings.utf_8")
_PYTHON = ("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib")
_LIBRARIES = ("libc6", "libexpat1", "zlib1g", "libssl3")
_CERTIFICATES = "ca-certificates"
_STDLIB = "usr/lib/python3.11"
_ENTRY = "#!/usr/bin/python3.11 -IS\nfrom raybus.submitter.__main__ import main\n\nraise SystemExit(main())\n"


def build(out: Path) -> ImageSize:
    """Make the image and write it to the archive `out`, its layer compressed; prints the size.

    Raises `DevError` when Debian's packages cannot be had, or when the image is larger than `LIMIT`.
    """
    with tempfile.TemporaryDirectory() as folder:
        rootfs = Path(folder) / "rootfs"
        rootfs.mkdir()
        fill(rootfs)
        size = write_archive(rootfs, out, name=IMAGE, config=CONFIG, compress=True)
    say(
        f"{IMAGE}: {size.layers / 1e6:.2f} MB compressed (limit {LIMIT / 1e6:g}), {size.unpacked / 1e6:.1f} MB unpacked"
    )
    if size.layers > LIMIT:
        raise DevError(f"The submitter's image has {size.layers} bytes of layers; at most {LIMIT} are allowed.")
    return size


def recipe_text() -> str:
    """Everything that the image's content depends on: another text means another image."""
    sources = [*_sources(), *sorted(Path(__file__).parent.glob("*.py"))]
    return "\n".join(source.read_text(encoding="utf-8") for source in sources)


def fill(rootfs: Path) -> None:
    """Make the root file system in an empty folder. Raises `DevError` when Debian's packages cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        tree, stage = Path(folder) / "debian", Path(folder) / "stage"
        debian.unpack((*_PYTHON, *_LIBRARIES, _CERTIFICATES), tree)
        _stage(stage)
        _copy(tree, rootfs, "usr/bin/python3.11")
        _freeze(tree, stage, rootfs / _STDLIB)
        _copy_libraries(tree, rootfs)
        _write_certificates(tree, rootfs)
    _write(rootfs / "submitter", _ENTRY, 0o755)
    # Names: /etc/hosts and DNS. The user exists for tools that look it up; it owns nothing.
    _write(rootfs / "etc/nsswitch.conf", "hosts: files dns\n", 0o644)
    _write(rootfs / "etc/passwd", "nonroot:x:65532:65532::/:/nonexistent\n", 0o644)
    _write(rootfs / "etc/group", "nonroot:x:65532:\n", 0o644)
    (rootfs / "tmp").mkdir(mode=0o755)


def _sources() -> list[Path]:
    spec = find_spec(_PROGRAM)
    if spec is None or not spec.submodule_search_locations:
        raise DevError(f"The package {_PROGRAM} is not installed: run `make setup`.")
    return sorted(Path(spec.submodule_search_locations[0]).glob("*.py"))


def _stage(stage: Path) -> None:
    """The program's own modules, and nothing else of the namespace."""
    package = stage / _PROGRAM.replace(".", "/")
    package.mkdir(parents=True)
    for source in _sources():
        shutil.copy(source, package)


def _freeze(tree: Path, stage: Path, out: Path) -> None:
    """Let the very Python of the image say what it imports, and compile it."""
    script = Path(__file__).with_name("freeze.py")
    python = tree / "usr/bin/python3.11"
    run(*_loader(tree), str(python), "-I", "-S", str(script), str(stage), str(out), f"{_PROGRAM}.__main__", *_LAZY)


def _loader(tree: Path) -> tuple[str, ...]:
    """The command that runs a program of the tree with the tree's own libraries."""
    folders = [str(folder) for folder in sorted([*tree.glob("lib/*-linux-gnu"), *tree.glob("usr/lib/*-linux-gnu")])]
    loader = next(tree.glob("lib/*-linux-gnu/ld-linux-*.so.*"), None)
    if loader is None:
        raise DevError("The Debian package libc6 has no loader where Debian 12 has it.")
    return str(loader), "--library-path", ":".join(folders)


def _copy_libraries(tree: Path, rootfs: Path) -> None:
    """What the program and its extension modules are linked with, and the loader under the path they name."""
    listing = ""
    for binary in (tree / "usr/bin/python3.11", *(rootfs / _STDLIB).rglob("*.so")):
        listing += run(*_loader(tree), "--list", str(binary))
    for word in sorted(set(listing.split())):
        if word.startswith(f"{tree}/"):
            _copy(tree, rootfs, word.removeprefix(f"{tree}/"))
    interpreter = next(path for path in (*tree.glob("lib64/ld-linux-*"), *tree.glob("lib/ld-linux-*")))
    link = rootfs / interpreter.relative_to(tree)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(os.readlink(interpreter))


def _write_certificates(tree: Path, rootfs: Path) -> None:
    """Debian's certificate authorities, where OpenSSL looks; a bundle mounted over the file replaces them."""
    certificates = sorted((tree / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    bundle = "".join(file.read_text(encoding="utf-8").rstrip("\n") + "\n" for file in certificates)
    _write(rootfs / "etc/ssl/certs/ca-certificates.crt", bundle, 0o644)
    (rootfs / "usr/lib/ssl").mkdir()
    (rootfs / "usr/lib/ssl/cert.pem").symlink_to("/etc/ssl/certs/ca-certificates.crt")


def _copy(tree: Path, rootfs: Path, path: str) -> None:
    """The file that `path` leads to, under that very path."""
    target = rootfs / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy((tree / path).resolve(), target)
    target.chmod(0o755)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
