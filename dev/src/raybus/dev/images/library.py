"""The images that a node needs, made when they are missing and loaded when the node has not got them."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raybus.dev.images import ray
from raybus.dev.images.oci import ImageConfig, write_archive
from raybus.dev.locks import exclusive
from raybus.dev.paths import cache_dir
from raybus.dev.progress import step
from raybus.dev.shell import run

PAUSE_IMAGE = "registry.k8s.io/pause:3.10"


@dataclass(frozen=True)
class Recipe:
    """How to make an image: its name, what its content depends on, how to fill its root file system, how it starts."""

    name: str
    depends_on: str
    fill: Callable[[Path], object]
    config: ImageConfig
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
        Recipe(
            PAUSE_IMAGE,
            hashlib.sha256(pause.read_bytes()).hexdigest(),
            lambda rootfs: shutil.copy2(pause, rootfs / "pause"),
            ImageConfig(user="65535:65535", cmd=("/pause",)),
            1,
        ),
        Recipe(ray.IMAGE, ray.recipe_text(), ray.fill, ray.CONFIG, 150),
    )


def _ensure(recipe: Recipe) -> Image:
    folder = cache_dir() / "images"
    title = recipe.name.rpartition("/")[2].replace(":", "-")
    stem = f"{title}-{hashlib.sha256(recipe.depends_on.encode()).hexdigest()[:8]}"
    archive, facts = folder / f"{stem}.tar", folder / f"{stem}.json"
    with exclusive(folder / f"{title}.lock", f"making the image {recipe.name}"):
        if not (archive.exists() and facts.exists()):
            with step(f"making the image {recipe.name}, only this once", recipe.build_s), _work_folder() as rootfs:
                recipe.fill(rootfs)
                size = write_archive(rootfs, archive, name=recipe.name, config=recipe.config)
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
