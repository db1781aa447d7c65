"""The archive is deterministic, complete and self-consistent."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from raybus.dev.images.oci import ImageConfig, ImageSize, write_archive

NAME = "docker.io/raybus/toy:1"
CONFIG = ImageConfig(user="1:2", workdir="/w", entrypoint=("/a",), cmd=("b",), env=(("K", "v=1"),))


def make_tree(root: Path, mtime: int) -> Path:
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "conf").write_text("hello")
    (root / "etc" / ("long" * 40)).write_bytes(b"x" * 70_000)
    (root / "run").write_text("#!")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("/etc/conf")
    os.link(root / "run", root / "run2")
    for path in root.rglob("*"):
        os.utime(path, (mtime, mtime), follow_symlinks=False)
    return root


def members(layer: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        return {m.name: m for m in tar.getmembers()}


def read(archive: Path) -> tuple[dict[str, bytes], dict[str, Any], dict[str, Any]]:
    with tarfile.open(archive) as tar:
        blobs = {m.name: (tar.extractfile(m) or io.BytesIO()).read() for m in tar.getmembers()}
    index = json.loads(blobs["index.json"])
    manifest = json.loads(blobs["blobs/" + index["manifests"][0]["digest"].replace(":", "/")])
    return blobs, index, manifest


@pytest.mark.parametrize("compress", [False, True])
def test_every_digest_and_size_in_the_archive_is_true(tmp_path: Path, compress: bool) -> None:
    size = write_archive(
        make_tree(tmp_path / "root", 7), tmp_path / "i.tar", name=NAME, config=CONFIG, compress=compress
    )
    blobs, index, manifest = read(tmp_path / "i.tar")
    for path, data in blobs.items():
        if path.startswith("blobs/"):
            assert path == "blobs/sha256/" + hashlib.sha256(data).hexdigest()
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == NAME
    [layer] = manifest["layers"]
    stored = blobs["blobs/" + layer["digest"].replace(":", "/")]
    plain = gzip.decompress(stored) if compress else stored
    assert layer["mediaType"].endswith("+gzip") == compress
    assert size == ImageSize(layers=len(stored), unpacked=len(plain), digest=index["manifests"][0]["digest"])
    image = json.loads(blobs["blobs/" + manifest["config"]["digest"].replace(":", "/")])
    assert image["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(plain).hexdigest()]
    assert image["config"] == {
        "User": "1:2", "WorkingDir": "/w", "Entrypoint": ["/a"], "Cmd": ["b"], "Env": ["K=v=1"]
    }  # fmt: skip
    docker = json.loads(blobs["manifest.json"])[0]
    assert docker["Layers"][0] in blobs and docker["Config"] in blobs and docker["RepoTags"] == [NAME]


def test_layer_keeps_modes_links_and_numeric_owners(tmp_path: Path) -> None:
    write_archive(make_tree(tmp_path / "root", 7), tmp_path / "i.tar", name=NAME, config=CONFIG)
    blobs, _, manifest = read(tmp_path / "i.tar")
    entries = members(blobs["blobs/" + manifest["layers"][0]["digest"].replace(":", "/")])
    assert list(entries) == ["etc", "etc/conf", "etc/" + "long" * 40, "link", "run", "run2"]
    assert entries["run"].mode == 0o755
    assert entries["link"].linkname == "/etc/conf"
    assert entries["run2"].islnk() and entries["run2"].linkname == "run"
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in entries.values()} == {
        (os.getuid(), os.getgid(), "", "", 0)
    }


def test_the_same_tree_gives_the_same_bytes_whatever_its_times(tmp_path: Path) -> None:
    for which, mtime in (("a", 1), ("b", 999)):
        tree = make_tree(tmp_path / which, mtime)
        write_archive(tree, tmp_path / f"{which}.tar", name=NAME, config=CONFIG, compress=True)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_a_failed_build_leaves_no_archive(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_archive(tmp_path / "absent", tmp_path / "i.tar", name=NAME, config=CONFIG)
    assert list(tmp_path.iterdir()) == []
