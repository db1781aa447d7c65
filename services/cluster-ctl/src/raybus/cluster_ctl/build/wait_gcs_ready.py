"""The init container in which a worker waits for the head's GCS (contract objects §3.2)."""

from __future__ import annotations

import copy

from raybus.api.decision import Json
from raybus.cluster_ctl.build.command import shell

NAME = "wait-gcs-ready"
_COPIED = ("image", "imagePullPolicy", "securityContext", "env", "volumeMounts")
_AMOUNTS = {"cpu": "200m", "memory": "256Mi"}

_SCRIPT = """\
started=$SECONDS
while true; do
  waited=$((SECONDS - started))
  if [ "$waited" -le 120 ]; then
    if ray health-check --address {address} > /dev/null 2>&1; then break; fi
    echo "Waiting for the Ray head at {address} for $waited s."
  else
    if ray health-check --address {address}; then break; fi
    echo "Still no Ray head at {address} after $waited s. Why: raybus explain raycluster/{cluster}"
  fi
  sleep 5
done
echo "The Ray head at {address} answers."
"""


def wait_gcs_ready(container: Json, address: str, cluster: str, login: bool) -> Json:
    """The init container for a worker whose Ray container, as the template has it, is `container`."""
    copied = {key: copy.deepcopy(container[key]) for key in _COPIED if container.get(key)}
    return {
        "name": NAME,
        **copied,
        "command": shell(login),
        "args": [_SCRIPT.format(address=address, cluster=cluster)],
        "resources": {"requests": dict(_AMOUNTS), "limits": dict(_AMOUNTS)},
    }
