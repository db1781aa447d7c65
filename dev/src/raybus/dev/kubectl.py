"""kubectl, as the one way in which this package talks to an API server."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybus.dev.errors import DevError
from raybus.dev.process import direct_environment


@dataclass(frozen=True)
class Kubectl:
    """The program and the cluster that it talks to."""

    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Standard output of one call. Raises `DevError` with kubectl's own words when it fails."""
        done = subprocess.run(
            [self.program, f"--kubeconfig={self.kubeconfig}", *arguments],
            env=direct_environment(),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise DevError(f"kubectl {' '.join(arguments[:3])} failed: {done.stderr.strip()[-600:]}")
        return done.stdout

    def apply(self, *files: Path) -> None:
        """Server-side apply of whole files: our CRDs are too large for the annotation of a client-side one."""
        names = [argument for file in files for argument in ("-f", str(file))]
        self("apply", "--server-side", "--force-conflicts", "--field-manager=raybus-dev", *names)

    def apply_text(self, manifest: str) -> None:
        """Server-side apply of a manifest in hand."""
        self("apply", "--server-side", "--force-conflicts", "--field-manager=raybus-dev", "-f", "-", stdin=manifest)

    def json(self, *arguments: str) -> Any:
        """Parsed output of a call with `-o json`."""
        return json.loads(self(*arguments, "-o", "json"))
