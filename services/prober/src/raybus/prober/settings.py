"""Settings of the prober."""

from dataclasses import dataclass

from raybus.runtime.common import CommonSettings
from raybus.runtime.settings import at_least_one, setting


@dataclass(frozen=True, kw_only=True)
class ProberSettings(CommonSettings):
    """How dashboards are reached, and how many calls are made at once."""

    use_kubernetes_proxy: bool = setting(
        False,
        "Reach dashboards through the API server's service proxy instead of by service DNS (outside the cluster).",
    )
    read_auth_tokens: bool = setting(
        False, "Read the Secret of a cluster with token authentication; needs the right to get Secrets by name."
    )
    kubeconfig: str = setting(
        "", "Kubeconfig file; empty = KUBECONFIG, else the pod's service account. Only read if one of the two is on."
    )
    max_calls: int = setting(256, "Calls to dashboards under way at once.")

    def __post_init__(self) -> None:
        """Raises SettingsError for a limit with which nothing would ever be done."""
        super().__post_init__()
        at_least_one(self, "max_calls")
