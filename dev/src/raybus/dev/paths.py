"""Where the development cluster keeps things: everything lies under one cache folder."""

import os
import re
from pathlib import Path

from raybus.dev.errors import DevError

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/raybus`, by default `~/.cache/raybus`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "raybus"


def clusters_dir() -> Path:
    """Folder that holds one folder per cluster."""
    return cache_dir() / "clusters"


def cluster_dir(name: str) -> Path:
    """Folder of one cluster.

    Raises `DevError` for a name that could not be part of host and interface names.
    """
    if not _NAME.fullmatch(name):
        raise DevError(f'"{name}" is no cluster name: use up to 20 small letters, digits and dashes, such as "dev".')
    return clusters_dir() / name


def repository() -> Path | None:
    """The checkout that this package runs from (it holds `charts/`), or None when installed elsewhere."""
    for parent in Path(__file__).resolve().parents:
        if (parent / "charts").is_dir() and (parent / "pyproject.toml").is_file():
            return parent
    return None
