"""Settings of the applier."""

from dataclasses import dataclass

from raybus.runtime.common import CommonSettings
from raybus.runtime.settings import at_least_one, setting


@dataclass(frozen=True, kw_only=True)
class ApplierSettings(CommonSettings):
    """Where it writes, and how much at once."""

    kubeconfig: str = setting(
        "", "Kubeconfig file; empty = KUBECONFIG, else the pod's service account, else ~/.kube/config."
    )
    max_in_flight: int = setting(16, "Requests to the API server under way at once (issue 5: more do not pay).")
    max_held: int = setting(1024, "Decisions held at once; of those that make objects, half for one namespace.")

    def __post_init__(self) -> None:
        """Raises SettingsError for a limit with which nothing would ever be done."""
        super().__post_init__()
        at_least_one(self, "max_in_flight", "max_held")
