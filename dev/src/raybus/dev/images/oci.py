"""One root file system folder -> one OCI image archive, as `ctr images import` and `docker load` take it.

The archive holds a single layer. It is written in one pass: the layer streams straight into the archive and its tar
header, which names the digest, is filled in afterwards. So neither memory nor a second copy on disk is needed, however
big the folder is.
"""

import gzip
import hashlib
import json
import os
import platform
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """What a container made from the image starts with.

    user: "uid" or "uid:gid"; workdir: absolute; entrypoint and cmd: argument vectors; env: name -> value.
    """

    user: str = "0:0"
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ImageSize:
    """Bytes: `layers` as stored (what a node pulls), `unpacked` as uncompressed tar; `digest` is the manifest's."""

    layers: int
    unpacked: int
    digest: str


class _Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...
    def flush(self) -> None: ...


class _Digest:
    """A writer that passes bytes on, and counts and hashes them."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._sink.write(data)

    def flush(self) -> None:
        self._sink.flush()

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def write_archive(rootfs: Path, out: Path, *, name: str, config: ImageConfig, compress: bool = False) -> ImageSize:
    """Write `rootfs` as the image `name` ("docker.io/library/x:tag") to the archive `out`, replacing it atomically.

    The same folder gives the same bytes: entries are sorted, owners numeric (those of the files) and all times 0. So
    Python's byte code must have been compiled not to be checked against its source's time (`unchecked-hash`).

    Raises OSError if a file cannot be read or the archive cannot be written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(out.name + ".part")
    try:
        with part.open("w+b") as archive:
            with _deferred_header(archive) as stored:
                unpacked = _write_layer(rootfs, stored, compress=compress)
            manifest = _describe(archive, stored, unpacked, name, config)
            archive.write(bytes(2 * _BLOCK))
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return ImageSize(layers=stored.size, unpacked=unpacked.size, digest=f"sha256:{manifest}")


@contextmanager
def _deferred_header(archive: IO[bytes]) -> Iterator[_Digest]:
    """Leave room for a tar header, let the caller write the blob, then fill in the header with its name and size."""
    start = archive.tell()
    archive.write(bytes(_BLOCK))
    blob = _Digest(archive)
    yield blob
    archive.write(bytes(-blob.size % _BLOCK))
    end = archive.tell()
    archive.seek(start)
    archive.write(_header(f"blobs/sha256/{blob.digest}", blob.size))
    archive.seek(end)


def _write_layer(rootfs: Path, stored: _Digest, *, compress: bool) -> _Digest:
    """Stream the layer's tar into `stored`; returns the digest of the uncompressed tar (the OCI diff id)."""
    if not compress:
        _write_tree(rootfs, stored)
        return stored
    with gzip.GzipFile(fileobj=stored, mode="wb", compresslevel=9, mtime=0, filename="") as packed:
        plain = _Digest(packed)
        _write_tree(rootfs, plain)
    return plain


def _write_tree(rootfs: Path, sink: _Digest) -> None:
    # A stream tar only writes.
    with tarfile.open(fileobj=cast(IO[bytes], sink), mode="w|", format=tarfile.PAX_FORMAT) as layer:
        for relative in _walk(rootfs):
            path = rootfs / relative
            entry = layer.gettarinfo(path, arcname=relative)
            if entry is None:  # a socket: has no place in an image
                continue
            entry.uname = entry.gname = ""
            entry.mtime = 0
            if entry.isreg():
                with path.open("rb") as content:
                    layer.addfile(entry, content)
            else:
                layer.addfile(entry)


def _walk(rootfs: Path) -> Iterator[str]:
    """Paths below rootfs, parents first, sorted; links are not followed."""
    pending = sorted(os.listdir(rootfs), reverse=True)
    while pending:
        relative = pending.pop()
        yield relative
        path = rootfs / relative
        if path.is_dir() and not path.is_symlink():
            pending.extend(f"{relative}/{child}" for child in sorted(os.listdir(path), reverse=True))


def _describe(archive: IO[bytes], stored: _Digest, unpacked: _Digest, name: str, config: ImageConfig) -> str:
    """Append config, manifest and the two indexes (OCI's and Docker's own); returns the manifest's digest."""
    compressed = stored is not unpacked
    config_digest, config_size = _put_blob(archive, _image_config(config, unpacked.digest))
    layer = {
        "mediaType": _LAYER_TYPE + "+gzip" * compressed,
        "digest": f"sha256:{stored.digest}",
        "size": stored.size,
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST_TYPE,
        "config": {"mediaType": _CONFIG_TYPE, "digest": f"sha256:{config_digest}", "size": config_size},
        "layers": [layer],
    }
    digest, size = _put_blob(archive, manifest)
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    entry = {"mediaType": _MANIFEST_TYPE, "digest": f"sha256:{digest}", "size": size, "annotations": names}
    _put_json(archive, "index.json", {"schemaVersion": 2, "manifests": [entry]})
    blobs = {"Config": f"blobs/sha256/{config_digest}", "Layers": [f"blobs/sha256/{stored.digest}"]}
    _put_json(archive, "manifest.json", [{**blobs, "RepoTags": [name]}])
    _put_json(archive, "oci-layout", {"imageLayoutVersion": "1.0.0"})
    return digest


def _image_config(config: ImageConfig, diff_id: str) -> dict[str, Any]:
    start: dict[str, Any] = {
        "User": config.user,
        "WorkingDir": config.workdir,
        "Env": [f"{key}={value}" for key, value in config.env],
    }
    if config.entrypoint:
        start["Entrypoint"] = list(config.entrypoint)
    if config.cmd:
        start["Cmd"] = list(config.cmd)
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": start,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "raybus"}],
    }


def _put_blob(archive: IO[bytes], content: dict[str, Any]) -> tuple[str, int]:
    data = _json(content)
    digest = hashlib.sha256(data).hexdigest()
    _put(archive, f"blobs/sha256/{digest}", data)
    return digest, len(data)


def _put_json(archive: IO[bytes], path: str, content: Any) -> None:
    _put(archive, path, _json(content))


def _put(archive: IO[bytes], path: str, data: bytes) -> None:
    archive.write(_header(path, len(data)) + data + bytes(-len(data) % _BLOCK))


def _header(path: str, size: int) -> bytes:
    entry = tarfile.TarInfo(path)
    entry.size = size
    return entry.tobuf(format=tarfile.USTAR_FORMAT)


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
