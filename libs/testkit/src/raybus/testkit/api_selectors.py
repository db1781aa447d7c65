"""Label selectors of the API server in memory."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

Labels = Mapping[str, str]
Selector = Callable[[Labels], bool]

_PART = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<name>[^\s,=!()]+)"
    r"|(?P<key>[^\s,=!()]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[^\s,()]*)"
    r"|\s(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?)\s*(?:,|$)"
)


@lru_cache(maxsize=256)
def parse_selector(text: str) -> Selector:
    """The requirements of a `labelSelector`, joined by "and". Raises ValueError for what is none."""
    checks: list[Selector] = []
    spot = 0
    while spot < len(text):
        found = _PART.match(text, spot)
        if found is None or found.end() == spot:
            raise ValueError(f"unable to parse requirement: {text[spot:]!r}")
        checks.append(_check(found))
        spot = found.end()
    return lambda labels: all(check(labels) for check in checks)


def _check(part: re.Match[str]) -> Selector:
    key, name = part["key"], part["name"]
    if part["absent"]:
        return lambda labels: name not in labels
    if part["set"]:
        values = frozenset(value.strip() for value in part["values"].split(","))
        if part["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if part["op"] is None:
        return lambda labels: key in labels
    value = part["value"]
    if part["op"] == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value
