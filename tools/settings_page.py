"""Write docs/settings.md: every setting, and what becomes of KubeRay's (`make diagrams`). A test holds it current."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from raybus.cli.settings_command import CLASSES, settings_class
from raybus.runtime.common import CommonSettings
from raybus.runtime.gates import GATES
from raybus.runtime.kuberay import FOREIGN
from raybus.runtime.settings import known_names

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"

KUBERAY: Mapping[str, tuple[str, ...]] = {
    "Flags": (
        *("--metrics-addr", "--health-probe-bind-address", "--enable-leader-election", "--leader-election-namespace"),
        *("--reconcile-concurrency", "--watch-namespace", "--forced-cluster-upgrade", "--log-file-path"),
        *("--log-file-encoder", "--log-stdout-encoder", "--enable-batch-scheduler", "--batch-scheduler", "--config"),
        *("--use-kubernetes-proxy", "--feature-gates", "--enable-metrics", "--qps", "--burst", "--zap-devel"),
        *("--zap-encoder", "--zap-log-level", "--zap-stacktrace-level", "--zap-time-encoding", "--kubeconfig"),
    ),
    "Keys of the configuration file": (
        *("metricsAddr", "probeAddr", "enableLeaderElection", "leaderElectionNamespace", "reconcileConcurrency"),
        *("watchNamespace", "logFile", "logFileEncoder", "logStdoutEncoder", "batchScheduler", "enableBatchScheduler"),
        *("useKubernetesProxy", "enableMetrics", "qps", "burst", "headSidecarContainers", "workerSidecarContainers"),
        *("defaultContainerEnvs", "defaultPodAnnotations", "defaultPodLabels", "deleteRayJobAfterJobFinishes"),
    ),
    "Environment": (
        *("ENABLE_INIT_CONTAINER_INJECTION", "ENABLE_PROBES_INJECTION", "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE"),
        *("CLUSTER_DOMAIN", "USE_INGRESS_ON_OPENSHIFT", "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV"),
        *("ENABLE_GCS_FT_REDIS_CLEANUP", "ENABLE_ZERO_DOWNTIME", "ENABLE_RANDOM_POD_DELETE"),
        *("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS"),
        *("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "ENABLE_LOGIN_SHELL", "ENABLE_DETERMINISTIC_HEAD_POD_NAME"),
        "ENABLE_WEBHOOKS",
    ),
}
"""Everything that KubeRay 1.7 reads (contract platform §1-§3)."""

HEAD = """# Settings

Written by `make diagrams` from the services' dataclasses and `raybus.runtime.kuberay`; do not edit.

Every service reads flags, then environment, then the file that `--config` (or `RAYBUS_CONFIG`) names, then its
defaults: the first that says something wins. The setting `metrics-addr` is the flag `--metrics-addr`, the variable
`RAYBUS_METRICS_ADDR` and the key `metricsAddr`. `raybus settings [SERVICE] [FLAGS]` prints what comes out and where
each value is from. A wrong value, an unknown flag and an unknown feature gate end the service at its start with one
line that says what to do; keys of the file that are meant for other services are left alone.

KubeRay ignores most flags once `--config` is given, and takes any value of a variable that it does not understand for
the default; Raybus does neither (ADR 0002). What is "not needed" is read, changes nothing, and is said once in the log.
One list of flags, one environment and one file may serve all services.
"""


def services_of(name: str) -> list[str]:
    """The services that have a setting of this name."""
    return [service for service in CLASSES if name in known_names(settings_class(service))]


def fate(name: str) -> tuple[str, str]:
    """(accepted, refused or not needed; by whom or why) of one of KubeRay's names. Raises KeyError."""
    if name == "--config":
        return "accepted", "all services; KubeRay's own file is read as it is"
    services = services_of(name)
    if services:
        return "accepted", "all services" if len(services) == len(CLASSES) else ", ".join(services)
    item = next((item for item in FOREIGN if name in item.names), None)
    if item is None:
        raise KeyError(name)
    return ("refused" if item.refused else "not needed"), item.why


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in row) + " |"


def _kuberay(names: Sequence[str]) -> Iterator[Sequence[str]]:
    order = ("accepted", "refused", "not needed")
    for name, (what, why) in sorted(((n, fate(n)) for n in names), key=lambda row: order.index(row[1][0])):
        yield f"`{name}`", what, why


def _gates() -> Iterator[Sequence[str]]:
    for name, gate in GATES.items():
        default = "on" if gate.default else "off"
        what = "both positions" if gate.built else "may be turned off" if gate.default else "refused when turned on"
        yield f"`{name}`", default, what


def _own(kind: type[Any], leave_out: type[Any] | None) -> Iterator[Sequence[str]]:
    common = {field.name for field in dataclasses.fields(leave_out)} if leave_out else set()
    for field in dataclasses.fields(kind):
        if field.name not in common:
            more = (*(f"--{flag}" for flag in field.metadata["flags"]), *field.metadata["env"], *field.metadata["keys"])
            default = field.default if field.default not in ((), None, "") else ""
            text = str(default).lower() if isinstance(default, bool) else str(default)
            yield (
                f"`{field.name.replace('_', '-')}`",
                f"`{text}`" if text else "",
                field.metadata["doc"],
                ", ".join(f"`{name}`" for name in more),
            )


def page() -> str:
    """The whole page."""
    lines = [HEAD, "# KubeRay's settings", ""]
    for title, names in KUBERAY.items():
        lines += [f"## {title}", "", *_table(("name", "Raybus", "who, or why"), _kuberay(names)), ""]
    lines += ["## Feature gates", "", "`AllAlpha` and `AllBeta` are understood.", ""]
    lines += [*_table(("gate", "default", "accepted"), _gates()), "", "# Raybus's settings", ""]
    head = ("setting", "default", "meaning", "further names")
    lines += ["## All services", "", *_table(head, _own(CommonSettings, None)), ""]
    for service in CLASSES:
        rows = list(_own(settings_class(service), CommonSettings))
        if rows:
            lines += [f"## {service}", "", *_table(head, iter(rows)), ""]
    return "\n".join(lines)


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
