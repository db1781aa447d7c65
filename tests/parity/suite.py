"""KubeRay's compiled test packages: what there is to run, and one run of one test with its verdicts."""

import csv
import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PACKAGES = ("e2e", "e2eautoscaler", "sampleyaml")
VERDICT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(([\d.]+)s\)", re.M)
LIMIT_S = 1200


class Known(NamedTuple):
    """A row of kuberay.tsv: what became of a test with KubeRay itself on such a machine."""

    package: str
    test: str
    result: str
    seconds: str


class Verdict(NamedTuple):
    """What became of one test or subtest; `result`: pass, fail, skip or timeout."""

    test: str
    result: str
    seconds: float


def known() -> list[Known]:
    """All tests and subtests about RayClusters, in the suite's order."""
    with (HERE / "kuberay.tsv").open() as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        return [Known(*row) for row in rows]


def units(rows: Iterable[Known]) -> list[tuple[str, str]]:
    """(package, test) that are run one at a time: whole tests, but each sample file by itself."""
    return [(row.package, row.test) for row in rows if ("/" in row.test) == (row.package == "sampleyaml")]


def compile_packages(suite: Path, out: Path) -> None:
    """Make `out`/<package>.test of a checkout's folder ray-operator. Raises CalledProcessError; Go says why."""
    out.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        subprocess.run(
            ["go", "test", "-c", "-o", str(out / f"{package}.test"), f"./test/{package}"], cwd=suite, check=True
        )


def run(suite: Path, programs: Path, unit: tuple[str, str], log: Path, environment: Mapping[str, str]) -> list[Verdict]:
    """Run one unit to its end; its output goes to `log`."""
    package, test = unit
    pattern = "/".join(f"^{re.escape(part)}$" for part in test.split("/"))
    command: Sequence[str] = (
        str(programs / f"{package}.test"),
        "-test.v",
        f"-test.run={pattern}",
        f"-test.timeout={LIMIT_S}s",
    )
    begun = time.monotonic()
    with log.open("w") as out:
        subprocess.run(command, cwd=suite / "test" / package, env=environment, stdout=out, stderr=out, check=False)
    return verdicts(test, log.read_text(errors="replace"), time.monotonic() - begun)


def verdicts(test: str, output: str, seconds: float) -> list[Verdict]:
    """The verdicts in what a test program printed; one for `test` itself in any case."""
    found = {name: Verdict(name, word.lower(), float(took)) for word, name, took in VERDICT.findall(output)}
    if test not in found:
        found[test] = Verdict(test, "timeout" if "test timed out" in output else "fail", seconds)
    return [verdict for verdict in found.values() if verdict.test.startswith(test)]
