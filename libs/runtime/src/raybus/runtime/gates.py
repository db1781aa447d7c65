"""Feature gates under KubeRay's names (contract platform §4)."""

from collections.abc import Iterator
from typing import NamedTuple

from raybus.runtime.settings import SettingsError


class Gate(NamedTuple):
    """`default`: on or off. `built`: Raybus has what the gate switches, so both positions are honoured."""

    default: bool
    built: bool


GATES: dict[str, Gate] = {
    "RayClusterStatusConditions": Gate(True, True),
    "RayJobDeletionPolicy": Gate(True, False),
    "RayMultiHostIndexing": Gate(True, True),
    "RayServiceIncrementalUpgrade": Gate(True, False),
    "RayCronJob": Gate(False, False),
    "SidecarSubmitterRestart": Gate(False, False),
    "RayClusterNetworkPolicy": Gate(False, True),
    "GCSFaultToleranceEmbeddedStorage": Gate(False, True),
    "RayClusterMTLS": Gate(False, True),
    "RayClusterHistoryServer": Gate(False, True),
    "KubernetesWAS": Gate(False, True),
}


GROUPS: dict[str, bool] = {"AllAlpha": False, "AllBeta": True}
"""Gates for all that are off, or on, by default; a gate that is named itself does as it says."""


def read_gates(text: str) -> dict[str, bool]:
    """Gate name -> position, for all gates; `text` is `Name=bool,...`.

    A gate whose feature is not built yet is accepted as off, or as its default, which changes nothing; switching such
    a feature on that is off by default is refused rather than ignored. Raises SettingsError.
    """
    said = dict(_parts(text))
    result = {}
    for name, gate in GATES.items():
        group = next(group for group, default in GROUPS.items() if default == gate.default)
        result[name] = said.get(name, said.get(group, gate.default))
        if result[name] and not gate.built and not gate.default:
            raise SettingsError(f"feature gate {name}=true: Raybus does not have this feature yet; leave the gate off")
    return result


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in GATES and name not in GROUPS:
            raise SettingsError(f"feature gate {name!r} is unknown; known are {', '.join(sorted((*GATES, *GROUPS)))}")
        if value.lower() not in ("true", "false"):
            raise SettingsError(f"feature gate {name}: {value!r} is not true or false")
        yield name, value.lower() == "true"
