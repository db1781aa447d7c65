"""KubeRay's settings that are no setting of Raybus: which are refused, which need nothing (contract platform §1-§3).

Those that have a meaning here are fields of a service's dataclass under KubeRay's own name; a test holds the two
against the contract's list. `make docs` writes docs/settings.md from both.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Foreign(NamedTuple):
    """One setting of KubeRay. `flag`, `variable`, `key`: its names, "" = it has none of that kind. `boolean`: the flag
    may stand without a value. `refused`: any value but those in `harmless` is an error; otherwise it is read and
    changes nothing. `why`: in a sentence for the user."""

    flag: str
    variable: str
    key: str
    why: str
    boolean: bool = False
    refused: bool = False
    harmless: tuple[str, ...] = ("",)

    @property
    def names(self) -> tuple[str, ...]:
        """As users write them."""
        return tuple(filter(None, (self.flag and f"--{self.flag}", self.variable, self.key)))

    def forbids(self, value: Any) -> bool:
        """Whether this value asks for what is not there."""
        return self.refused and str(value).lower() not in self.harmless


_LOGS = "the form of the log is --log-stdout-encoder, its detail --zap-log-level"
_NO_FILE = "logs go to standard output only; redirect that"

FOREIGN: tuple[Foreign, ...] = (
    Foreign("log-file-path", "", "logFile", _NO_FILE, refused=True),
    Foreign(
        *("", "ENABLE_WEBHOOKS", ""),
        "there are no webhooks: the schema and the controllers check everything; leave it out",
        refused=True,
        harmless=("", "false"),
    ),
    Foreign("log-file-encoder", "", "logFileEncoder", _NO_FILE),
    Foreign(
        *("enable-leader-election", "", "enableLeaderElection"),
        "every replica works, partitions move by leases on the bus",
        boolean=True,
    ),
    Foreign(
        *("leader-election-namespace", "", "leaderElectionNamespace"), "leases are on the bus and not in Kubernetes"
    ),
    Foreign(
        *("reconcile-concurrency", "", "reconcileConcurrency"),
        "a decision takes about a millisecond and waits for nothing; more replicas are how to scale",
    ),
    Foreign("forced-cluster-upgrade", "", "", "it has no effect in KubeRay either", boolean=True),
    Foreign("enable-metrics", "", "enableMetrics", "metrics are always on", boolean=True),
    Foreign(*("qps", "", "qps"), "the applier's --max-in-flight bounds its requests; 429 and Retry-After are honoured"),
    Foreign("burst", "", "burst", "see --qps"),
    Foreign("zap-devel", "", "", _LOGS, boolean=True),
    Foreign("zap-encoder", "", "", _LOGS),
    Foreign("zap-stacktrace-level", "", "", _LOGS),
    Foreign("zap-time-encoding", "", "", "times are ISO 8601 in UTC"),
    Foreign(
        *("", "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", ""),
        "nothing is decided anew without a change or a due time, so there is no interval",
    ),
    Foreign("", "USE_INGRESS_ON_OPENSHIFT", "", "Ingresses are made everywhere; --openshift-routes asks for Routes"),
    Foreign("", "ENABLE_ZERO_DOWNTIME", "", "RayServices are not handled yet and say so"),
)

ELSEWHERE = ("use-kubernetes-proxy", "kubeconfig")
"""KubeRay's flags that one of the services takes; the others read them and need nothing, so that one list of flags
serves all."""
_SWITCHES = frozenset(("use-kubernetes-proxy", *(item.flag for item in FOREIGN if item.boolean)))
FLAGS: dict[str, Foreign | None] = dict.fromkeys(ELSEWHERE) | {item.flag: item for item in FOREIGN if item.flag}


def without_effect(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(name, why) of the settings of KubeRay that are given and change nothing, for the log at the start."""
    given = {word.lstrip("-").partition("=")[0] for word in arguments if word.startswith("-")}
    for item in FOREIGN:
        if not item.refused and item.flag and item.flag in given:
            yield f"--{item.flag}", item.why
        if not item.refused and environment.get(item.variable):
            yield item.variable, item.why


def is_switch(flag: str) -> bool:
    """Whether a flag that is no setting here may stand without a value."""
    return flag in _SWITCHES
