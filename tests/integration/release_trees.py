"""Two releases of Raybus side by side: the last commit, tagged, and a next one that a test makes of it."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW = "release-1", "release-2"
API, BUS = "libs/api/src/raybus/api", "libs/bus/src/raybus/bus"

LATER = '''

class Later(msgspec.Struct, frozen=True, kw_only=True):
    """What the next release adds to every message."""

    later: dict[str, str] = msgspec.field(default_factory=lambda: {"said": "by the next release"})
'''

STRUCT = r"^class (\w+)\(Struct, frozen=True, kw_only=True"
OF_LATER = r"class \1(Later, frozen=True, kw_only=True"
CHANGES: list[tuple[str, str, str | Callable[[re.Match[str]], str]]] = [
    (f"{API}/schema.py", r"^OURS = Version\(1, (\d+)\)$", lambda found: f"OURS = Version(1, {int(found[1]) + 1})"),
    (f"{API}/schema.py", r"\Z", LATER),
    (f"{API}/messages.py", STRUCT, OF_LATER),
    (f"{API}/messages.py", r"^(from raybus\.api\.schema import SCHEMA)", r"from raybus.api.schema import Later\n\1"),
    (f"{API}/decision.py", STRUCT, OF_LATER),
    (f"{API}/decision.py", r"^(from raybus\.api\.times import)", r"from raybus.api.schema import Later\n\1"),
    (f"{API}/reasons.py", r'^    (CREATED_\w+) = "(\w+)"$', r'    \1 = "\2InTheNextRelease"'),
    (f"{BUS}/leases.py", r"^    schema: str = SCHEMA$", '    schema: str = SCHEMA\n    later: str = "new"'),
    (f"{BUS}/partitions.py", r"^    schema: str = SCHEMA$", '    schema: str = SCHEMA\n    later: str = "new"'),
]
"""(file, pattern, replacement): a minor version that touches every kind of message in each way that it may."""


class Trees(NamedTuple):
    """Folders with the two releases; `search_path` makes Python take Raybus from one of them."""

    old: Path
    new: Path


def make_trees(folder: Path) -> Trees:
    """Clone, tag, change, tag; one work tree for each tag."""
    clone = folder / "clone"
    _git(folder, "clone", "-q", "--shared", str(ROOT), str(clone))
    _git(clone, "tag", OLD)
    for name, pattern, replacement in CHANGES:
        path = clone / name
        text, count = re.subn(pattern, replacement, path.read_text(), flags=re.M)
        assert count, f"{name} has nothing like {pattern} any more: tell this test what the next release changes"
        path.write_text(text)
    _git(clone, "-c", "user.name=t", "-c", "user.email=t@example.test", "commit", "-q", "-a", "-m", "The next release")
    _git(clone, "tag", NEW)
    trees = Trees(folder / OLD, folder / NEW)
    for tag, tree in ((OLD, trees.old), (NEW, trees.new)):
        _git(clone, "worktree", "add", "-q", "--detach", str(tree), tag)
    return trees


def search_path(tree: Path) -> str:
    """PYTHONPATH: before the packages that are installed."""
    rooms = ("libs/*", "services/*", "cli", "dev")
    return ":".join(str(path) for room in rooms for path in sorted(tree.glob(f"{room}/src")))


def version_of(tree: Path) -> str:
    """The version of the messages that a process with this search path writes."""
    program = "import raybus.api.schema as s; print(s.SCHEMA, s.__file__)"
    environment = {"PYTHONPATH": search_path(tree)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    version, file = done.stdout.split()
    assert Path(file).is_relative_to(tree)
    return version


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
