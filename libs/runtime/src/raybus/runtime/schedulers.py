"""Which batch scheduler is chosen, by KubeRay's flags, keys and gate (contract platform §1, objects §6)."""

from collections.abc import Mapping

from raybus.runtime.settings import SettingsError

WAS = "kubernetes-was"
"""Kubernetes' own gang scheduling, which is chosen by its feature gate and has no name among the flags."""


def chosen_scheduler(name: str, old_flag: bool, gates: Mapping[str, bool]) -> str:
    """Name of the batch scheduler, "" for none. `name`: --batch-scheduler; `old_flag`: --enable-batch-scheduler, which
    means volcano. Raises SettingsError when more than one is chosen."""
    chosen = [name] if name else []
    chosen += ["volcano"] if old_flag else []
    chosen += [WAS] if gates["KubernetesWAS"] else []
    if len(chosen) > 1:
        raise SettingsError(
            "--batch-scheduler, --enable-batch-scheduler and feature gate KubernetesWAS choose a batch scheduler each:"
            " use one of them"
        )
    return chosen[0] if chosen else ""


def kinds_gate(scheduler: str) -> str:
    """What stands in `Kind.gate` of kinds that only this scheduler has."""
    return f"batch-scheduler={scheduler}"
