"""Settings that every service has."""

import re
from dataclasses import dataclass
from typing import Literal

from raybus.runtime.gates import read_gates
from raybus.runtime.schedulers import chosen_scheduler
from raybus.runtime.settings import SettingsError, setting


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """Bus, listeners and logs."""

    nats_url: str = setting("nats://127.0.0.1:4222", "Address of the NATS server; several with commas.")
    nats_user: str = setting("", "User on the bus; empty = the service's name.")
    nats_password: str = setting("", "Password on the bus.", secret=True)
    nats_ca_file: str = setting(
        "", "Certificate authority of the NATS server; empty = no TLS unless the URL says tls://."
    )
    replica: str = setting("", "Name of this replica, unique within the service; empty = host and process id.")
    metrics_addr: str = setting(
        ":8080", "Listener of /metrics, /livez and /readyz; 0 disables it. Port 0 picks a free one."
    )
    health_probe_bind_address: str = setting(
        "", "A second listener for /healthz and /readyz, as KubeRay has on :8082; empty = none.", keys=("probeAddr",)
    )
    log_stdout_encoder: Literal["json", "console"] = setting("json", "Form of the log on standard output.")
    log_level: str = setting(
        "info", "debug, info, warning or error; zap's panic and numbers are understood too.", flags=("zap-log-level",)
    )
    watch_namespace: tuple[str, ...] = setting((), "Namespaces to look at, with commas; empty = all.")
    feature_gates: str = setting("", "Comma-separated Name=true|false, the same for all services.")
    batch_scheduler: Literal["", "volcano", "yunikorn", "scheduler-plugins", "kai-scheduler"] = setting(
        "", "Scheduler that places the pods of a cluster together; empty = none."
    )
    enable_batch_scheduler: bool = setting(False, "The older way to say --batch-scheduler=volcano.")

    def __post_init__(self) -> None:
        """Raises SettingsError for feature gates that cannot be honoured, for two batch schedulers at once, and for
        addresses that are none."""
        chosen_scheduler(self.batch_scheduler, self.enable_batch_scheduler, read_gates(self.feature_gates))
        for name in ("metrics_addr", "health_probe_bind_address"):
            address = getattr(self, name)
            if address not in ("", "0") and not re.fullmatch(r".*:\d{1,5}", address):
                raise SettingsError(f"{name.replace('_', '-')}: {address!r} is no host:port (host may be left out)")
