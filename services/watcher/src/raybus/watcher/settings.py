"""Settings of the watcher."""

from dataclasses import dataclass
from typing import Literal

from raybus.kube.config import Access
from raybus.runtime.common import CommonSettings
from raybus.runtime.settings import setting


@dataclass(frozen=True, kw_only=True)
class WatcherSettings(CommonSettings):
    """Which API server to watch; `watch_namespace` of the common settings says which namespaces of it."""

    kubeconfig: str = setting("", "Kubeconfig file; empty = $KUBECONFIG, else in-cluster, else ~/.kube/config.")
    context: str = setting("", "Context in the kubeconfig; empty = its current one.")

    stream_replicas: Literal[1, 3] = setting(1, "Copies of each stream: 3 on a cluster of NATS servers.")

    @property
    def access(self) -> Access:
        """The same for `raybus.kube`."""
        return Access(kubeconfig=self.kubeconfig, context=self.context)
