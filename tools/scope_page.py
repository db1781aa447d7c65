"""Write docs/scope.md: what is built and what is refused (`make diagrams`). A test holds it current, and complete."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from raybus.cluster_ctl.validate.gates import GATED
from raybus.job_ctl.unsupported import TABLE
from raybus.runtime.gates import GATES
from raybus.runtime.kuberay import FOREIGN

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scope.md"

RAYCLUSTER: Mapping[str, str] = {
    "headGroupSpec": "head pod, head Service of any type, Ingress",
    "workerGroupSpecs": "groups, scaling, replacement of failed pods, replicas of several hosts, suspension of a group",
    "rayVersion": "",
    "suspend": "atomic, by conditions",
    "enableInTreeAutoscaling": "the autoscaler's container and rights",
    "autoscalerOptions": "",
    "headServiceAnnotations": "",
    "gcsFaultToleranceOptions": "Redis with its cleanup Job, embedded storage behind its gate",
    "authOptions": "token authentication",
    "tlsOptions": "mTLS by cert-manager, behind its gate",
    "networkPolicy": "behind its gate",
    "historyServerOptions": "the collector's container, behind its gate",
    "upgradeStrategy": "None and Recreate",
    "managedBy": "objects of others are left alone",
}
RAYJOB: Mapping[str, str] = {
    "entrypoint": "",
    "entrypointNumCpus": "",
    "entrypointNumGpus": "",
    "entrypointResources": "",
    "metadata": "",
    "runtimeEnvYAML": "",
    "jobId": "",
    "submissionMode": "K8sJobMode and HTTPMode",
    "submitterPodTemplate": "",
    "submitterConfig": "",
    "rayClusterSpec": "all that a RayCluster may have, but for what is refused below",
    "backoffLimit": "a new cluster for each attempt",
    "activeDeadlineSeconds": "",
    "preRunningDeadlineSeconds": "",
    "shutdownAfterJobFinishes": "",
    "ttlSecondsAfterFinished": "",
    "managedBy": "objects of others are left alone",
}
"""Field of the spec -> what of it is built, "" = all that it can mean."""

HEAD = """# What is built, and what is refused

Written by `make diagrams` from the tables in the code; do not edit.

Raybus takes the place of KubeRay 1.7 for RayClusters and RayJobs. What it does not do yet it refuses where the user
looks, and never ignores: a RayJob gets `jobDeploymentStatus: ValidationFailed` with a message and a Warning event, a
RayCluster a Warning event and `status.reason`, and nothing is created. [settings.md](settings.md) says the same of
settings, [deviations.md](deviations.md) of behaviour.
"""


def refused_fields() -> set[str]:
    """Top-level fields of a RayJob's spec that are refused whenever they are set."""
    return {row.field.removeprefix("spec.") for row in TABLE if row.field.startswith("spec.") and ":" not in row.field}


def _built(fields: Mapping[str, str]) -> Iterator[Sequence[str]]:
    for name, what in fields.items():
        yield f"`spec.{name}`", what


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def page() -> str:
    """The whole page."""
    later = [name for name, gate in GATES.items() if not gate.built]
    lines = [
        *(HEAD, "## RayCluster", ""),
        *_table(("field", "built"), _built(RAYCLUSTER)),
        *("", "Behind a feature gate; refused by name while it is closed:", ""),
        *_table(("field", "gate"), ((f"`spec.{row.field}`", f"`{row.gate}`") for row in GATED)),
        *("", "## RayJob", ""),
        *_table(("field", "built"), _built(RAYJOB)),
        *("", "Refused:", ""),
        *_table(("field",), ((f"`{row.field}`",) for row in TABLE)),
        *("", "## Other kinds", ""),
        "RayService: each one gets a Warning event that says that it is not handled yet, and is left alone.",
        "RayCronJob: its feature gate is off by default, as in KubeRay, and is refused when it is turned on.",
        *("", "## Of the operator itself", ""),
        f"Feature gates without a feature yet: {', '.join(f'`{name}`' for name in later)}.",
        *("", "Refused settings:", ""),
        *_table(("setting", "why"), ((", ".join(f"`{n}`" for n in i.names), i.why) for i in FOREIGN if i.refused)),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
