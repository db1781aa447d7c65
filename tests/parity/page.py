"""Results of runs of KubeRay's suite, and docs/parity.md made of two of them."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import suite

Results = Mapping[str, Mapping[str, Any]]
"""`package/test` -> what parity.py noted: result, seconds, date, commit."""

HEAD = """# KubeRay's own tests

Written by `make parity` from two complete runs; do not edit. KubeRay's end-to-end tests about RayClusters (release
1.7.0), on a real node with real Ray, one at a time. The column of KubeRay is what became of each with KubeRay itself on
such a machine.

"""


def results(file: Path) -> dict[str, Mapping[str, Any]]:
    """The last result of each test in a file of lines of JSON."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {f"{line['package']}/{line['test']}": line for line in lines}


def complete(found: Results) -> bool:
    """Whether each unit has a result."""
    return all("/".join(unit) in found for unit in suite.units(suite.known()))


def worse(found: Results) -> list[str]:
    """Tests that pass with KubeRay and did not pass here."""
    rows = [f"{row.package}/{row.test}" for row in suite.known() if row.result == "pass"]
    return [name for name in rows if name in found and found[name]["result"] != "pass"]


def last_line(found: Results) -> str:
    """Counts of all that ran, and of what passes with KubeRay alone."""
    counts = Counter(str(result["result"]) for result in found.values())
    words = " ".join(f"{word}={counts[word]}" for word in ("pass", "fail", "skip", "timeout"))
    return f"parity: {words} worse_than_kuberay={len(worse(found))}"


def page(runs: Mapping[int, Results]) -> str:
    """The whole page."""
    text = HEAD
    for number, found in sorted(runs.items()):
        days = sorted({str(result["date"]) for result in found.values()})
        commits = sorted({str(result["commit"]) for result in found.values()})
        text += f"- Run {number}: {' to '.join(days)}, commit {', '.join(commits)}; `{last_line(found)}`\n"
    text += "\n| package | test | KubeRay | s |" + "".join(f" Raybus, run {number} | s |" for number in sorted(runs))
    text += "\n|---|---|---|---|" + "---|---|" * len(runs) + "\n"
    for row in suite.known():
        cells = [row.package, row.test.replace("|", "/"), row.result, row.seconds]
        for _, found in sorted(runs.items()):
            result = found.get(f"{row.package}/{row.test}")
            cells += [str(result["result"]), f"{result['seconds']:.0f}"] if result else ["not run", ""]
        text += f"| {' | '.join(cells)} |\n"
    return text
