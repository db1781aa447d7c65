"""How the Ray container starts: the `ray start` line and what of the user's command stays (contract objects §2.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from raybus.api.decision import Json
from raybus.cluster_ctl.labels import OVERWRITE_COMMAND, is_true

ULIMIT = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "
_ALWAYS_WITH_VALUE = ("log-color", "include-dashboard", "include-log-monitor")


def ray_start(params: Mapping[str, str], head: bool) -> str:
    """`ray start` with its flags in name order; each flag stands between blanks, as KubeRay's users see it."""
    return "ray start " + ("--head " if head else "") + "".join(_flags(params))


def _flags(params: Mapping[str, str]) -> Iterable[str]:
    for name, value in sorted(params.items()):
        if name in _ALWAYS_WITH_VALUE or value.lower() not in ("true", "false"):
            yield f" --{name}={value} "
        elif is_true(value):
            yield f" --{name} "


def shell(login: bool) -> list[str]:
    """The shell that runs generated commands."""
    return ["/bin/bash", "-cl" if login else "-c", "--"]


def set_command(container: Json, start: str, annotations: Mapping[str, str], login: bool) -> None:
    """Put `start` into the Ray container, after the user's own command, unless the user starts Ray himself."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    own = "".join(f" {word} " for word in words)
    if is_true(annotations.get(OVERWRITE_COMMAND, "")) or "ray start" in own:
        return
    generated = ULIMIT + start
    container["command"] = shell(login)
    container["args"] = [f"{own} && {generated}" if own else generated]
