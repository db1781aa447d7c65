"""The images that a node needs, made when they are missing and loaded when the node has not got them."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from raybus.dev.images import ray, submitter
from raybus.dev.images.oci import ImageConfig, ImageSize, write_archive
from raybus.dev.locks import exclusive
from raybus.dev.paths import cache_dir
from raybus.dev.progress import step
from raybus.dev.shell import run

PAUSE_IMAGE = "registry.k8s.io/pause:3.10"


@dataclass(frozen=True)
class Recipe:
    """How to make an image: its name, what its content depends on, and what writes its archive in how many seconds."""

    name: str
    depends_on: str
    build: Callable[[Path], ImageSize]
    build_s: int


@dataclass(frozen=True)
class Image:
    """An image archive; `digest` is that of its manifest, by which a node knows whether it has this very image."""

    name: str
    archive: Path
    digest: str


def load_images(ctr: tuple[str, ...], pause: Path) -> None:
    """Make all images of a node as far as they are missing and import them by `ctr` (program and connection).

    `pause`: the program that holds a pod's network namespace.
    """
    for recipe in _recipes(pause):
        image = _ensure(recipe)
        if (image.name, image.digest) not in present(run(*ctr, "images", "ls")):
            with step(f"loading the image {image.name} into the node", 15):
                run(*ctr, "images", "import", str(image.archive))


def present(listing: str) -> set[tuple[str, str]]:
    """Names and digests out of what `ctr images ls` prints."""
    rows = [line.split() for line in listing.splitlines()[1:]]
    return {(row[0], row[2]) for row in rows if len(row) > 2}


def _recipes(pause: Path) -> tuple[Recipe, ...]:
    return (
        Recipe(PAUSE_IMAGE, hashlib.sha256(pause.read_bytes()).hexdigest(), partial(_build_pause, pause), 1),
        Recipe(submitter.IMAGE, submitter.recipe_text(), submitter.build, 10),
        Recipe(ray.IMAGE, ray.recipe_text(), _build_ray, 150),
    )


def _build_pause(program: Path, out: Path) -> ImageSize:
    with _work_folder() as rootfs:
        shutil.copy2(program, rootfs / "pause")
        return write_archive(rootfs, out, name=PAUSE_IMAGE, config=ImageConfig(user="65535:65535", cmd=("/pause",)))


def _build_ray(out: Path) -> ImageSize:
    with _work_folder() as rootfs:
        ray.fill(rootfs)
        return write_archive(rootfs, out, name=ray.IMAGE, config=ray.CONFIG)


def _ensure(recipe: Recipe) -> Image:
    folder = cache_dir() / "images"
    title = recipe.name.rpartition("/")[2].replace(":", "-")
    stem = f"{title}-{hashlib.sha256(recipe.depends_on.encode()).hexdigest()[:8]}"
    archive, facts = folder / f"{stem}.tar", folder / f"{stem}.json"
    with exclusive(folder / f"{title}.lock", f"making the image {recipe.name}"):
        if not (archive.exists() and facts.exists()):
            with step(f"making the image {recipe.name}, only this once", recipe.build_s):
                size = recipe.build(archive)
            for old in folder.glob(f"{title}-*"):
                if old not in (archive, facts) and old.suffix != ".lock":
                    old.unlink()
            facts.write_text(json.dumps({"digest": size.digest}))
    return Image(recipe.name, archive, json.loads(facts.read_text())["digest"])


@contextmanager
def _work_folder() -> Iterator[Path]:
    """A folder for a root file system. In the cache and not in the system's: Ray's is 1 GB."""
    with tempfile.TemporaryDirectory(dir=cache_dir() / "images", prefix="rootfs-") as folder:
        rootfs = Path(folder)
        rootfs.chmod(0o755)
        yield rootfs
