"""Pieces of CEL that several rules are made of; all of them known to Kubernetes 1.30, the first with policies."""

from __future__ import annotations

from collections.abc import Iterable

RAY_VERSION = "variables.rayVersion"
MOST_SORTED = 10
"""Entries of a list that `in_order` gives; the others are left out."""


def text(value: str) -> str:
    """A literal of type string."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def texts(values: Iterable[str]) -> str:
    """A literal of type list(string)."""
    return f"[{', '.join(text(value) for value in values)}]"


def ray_version(path: str) -> str:
    """Major and minor of the version at the optional `path`, as `version_of` reads them; empty if it is none."""
    return (
        f"[{path}.orValue('')].filter(v, v.matches('^v?[0-9]+\\\\.[0-9]+'))"
        ".map(v, v.find('[0-9]{1,9}\\\\.[0-9]{1,9}').split('.').map(n, int(n)))"
    )


def before(major: int, minor: int) -> str:
    """Whether the variable `rayVersion` is none, or older."""
    newer = f"v[0] > {major} || (v[0] == {major} && v[1] >= {minor})"
    return f"!{RAY_VERSION}.exists(v, {newer})"


def in_order(found: str) -> str:
    """The strings of a list without doubles, sorted: CEL can sort by itself only from Kubernetes 1.34 on."""
    ranks = ", ".join(str(number) for number in range(MOST_SORTED))
    at_rank = "found.filter(a, size(found.filter(b, b < a)) == rank)[0]"
    return f"[{found}].map(found, [{ranks}].filter(rank, rank < size(found)).map(rank, {at_rank}))[0]"


def named(conditions: dict[str, str]) -> str:
    """The names whose condition holds."""
    entries = ", ".join(f"{condition} ? {text(name)} : ''" for name, condition in conditions.items())
    return f"[{entries}].filter(name, name != '')"
