"""`make golden [KIND="RayCluster RayJob"]`: the recordings of all profiles against a running Raybus on a bare cluster.

Each profile (profiles.yaml) that has such cases gets services with its settings, under KubeRay's names. What
compare.py prints for it lies in `build/golden/<profile>.txt` afterwards; the last line adds all of them up.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from raybus.dev import cluster
from raybus.dev.cluster import Cluster, ClusterOptions
from raybus.dev.errors import DevError
from raybus.dev.stack import Stack, running
from raybus.testkit.loopback import loopback_address

NAME, ADDRESS = "golden", "10.99.0.9"
HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "build" / "golden"
COMPARE = [sys.executable, str(HERE / "compare.py")]
LAST = re.compile(r"^golden: equal=(\d+) accepted=(\d+) differing=(\d+) skipped=(\d+)$", re.M)
NOT_BUILT = re.compile(r"RayCronJob=true,?")
"""Gates that Raybus refuses still; what needs them shows as a difference."""
VERDICTS = ("equal", "accepted", "differing", "skipped")


def main() -> int:
    """The exit status: 0 when nothing differs and nothing was skipped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="*", default=[], help="RayCluster RayJob RayService RayCronJob; all if none")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    profiles: dict[str, Any] = yaml.safe_load((HERE / "profiles.yaml").read_text())
    found: Counter[str] = Counter()
    try:
        bare = cluster.up(ClusterOptions(name=NAME, bare=True))
        with loopback_address(ADDRESS):
            for name in _with_cases(options.kind, profiles):
                verdict = _judge(bare, name, profiles[name], options.kind)
                _say(name, verdict)
                found += verdict
    except DevError as error:
        sys.stderr.write(f"golden: {error}\n")
        return 2
    finally:
        cluster.down(NAME)
    _say("golden", found)
    return 1 if found["differing"] or found["skipped"] or not found["equal"] else 0


def _say(what: str, verdict: Counter[str]) -> None:
    sys.stdout.write(f"{what}: " + " ".join(f"{word}={verdict[word]}" for word in VERDICTS) + "\n")
    sys.stdout.flush()


def _with_cases(kinds: list[str], profiles: Iterable[str]) -> list[str]:
    """The profiles that have cases of these kinds (column 2 of what compare.py lists)."""
    words = ["--kind", *kinds] if kinds else []
    listed = subprocess.run([*COMPARE, "--list", *words], capture_output=True, text=True, check=True).stdout
    present = {line.split()[1] for line in listed.splitlines() if "steps=" in line}
    return [name for name in profiles if name in present]


def _judge(bare: Cluster, name: str, profile: Mapping[str, Any], kinds: list[str]) -> Counter[str]:
    """Run one profile. Raises DevError when nothing could be compared."""
    words = ["--kind", *kinds] if kinds else []
    with _services(bare, name, profile):
        done = subprocess.run(
            [
                *(*COMPARE, "--kubeconfig", str(bare.kubeconfig), "--all", "--profile", name, *words),
                *("--fake-ip", ADDRESS, "--accept", str(HERE.parents[1] / "docs" / "deviations.yaml")),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    (OUT / f"{name}.txt").write_text(done.stdout + done.stderr)
    last = LAST.search(done.stdout)
    if last is None:
        raise DevError(f"nothing could be compared in profile {name}: {done.stderr.strip()[-500:]}")
    return Counter(dict(zip(VERDICTS, map(int, last.groups()), strict=True)))


@contextmanager
def _services(bare: Cluster, name: str, profile: Mapping[str, Any]) -> Iterator[Stack]:
    """All services with the settings of the profile. Raises DevError when one of them ends by itself."""
    settings = {"RAYBUS_USE_KUBERNETES_PROXY": "true", "RAYBUS_SUBMITTER": "ray", **profile.get("env", {})}
    for flag in profile.get("flags", []):
        key, _, value = flag.removeprefix("--").partition("=")
        settings["RAYBUS_" + key.upper().replace("-", "_")] = NOT_BUILT.sub("", value)
    if config := profile.get("config"):
        file = OUT / f"{name}.config.yaml"
        file.write_text(yaml.safe_dump(config))
        settings["RAYBUS_CONFIG"] = str(file)
    with running(Stack(bare, OUT / f"stack-{name}", {}, settings)) as stack:
        yield stack
        if ended := stack.ended():
            raise DevError("; ".join(ended))


if __name__ == "__main__":
    sys.exit(main())
