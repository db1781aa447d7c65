"""Draw docs/states/*.md from the phase tables: `make diagrams`. A test fails while a file is not current."""

import sys
from collections.abc import Mapping
from pathlib import Path

from raybus.api.v1 import NEW
from raybus.job_ctl.phases import TABLE, Row

FOLDER = Path(__file__).parents[1] / "docs" / "states"


def name(phase: str) -> str:
    """A phase as people say it: the first one is empty on the wire."""
    return phase or "New"


def words(row: Row) -> str:
    """The guard's name in words, with the ADR of a row that KubeRay does not have."""
    text = row.guard.__name__.replace("_", " ")
    return f"{text} (ADR {row.adr})" if row.adr else text


def rayjob(table: Mapping[str, tuple[Row, ...]] = TABLE) -> str:
    """Mermaid diagram and table of a RayJob's phases, as Markdown."""
    labels: dict[tuple[str, str], list[str]] = {}
    for phase, rows in table.items():
        for row in rows:
            labels.setdefault((name(phase), name(row.to)), []).append(words(row))
    arrows = [f"    {start} --> {end}: {'<br/>'.join(texts)}" for (start, end), texts in labels.items()]
    ends = [f"    {name(phase)} --> [*]" for phase in table if not table[phase] or phase == "Failed"]
    lines = [
        f"| {name(phase)} | {number} | {words(row)} | {name(row.to)} | {_meaning(row)} |"
        for phase, rows in table.items()
        for number, row in enumerate(rows, 1)
    ]
    return "\n".join(
        [
            "# Phases of a RayJob",
            "",
            "Drawn by `make diagrams` from `raybus.job_ctl.phases.TABLE`; do not edit. The phase is",
            "`status.jobDeploymentStatus`; the first row whose guard holds is taken. Deletion goes before",
            "all rows. Failed goes on to Retrying only in the decision that entered it, so a stored Failed is final.",
            "",
            "```mermaid",
            "stateDiagram-v2",
            f"    [*] --> {name(NEW)}",
            *arrows,
            *ends,
            "```",
            "",
            "| Phase | Row | Guard | Next | Holds when |",
            "|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


def _meaning(row: Row) -> str:
    return " ".join((row.guard.__doc__ or "").split("\n\n")[0].split()).replace("|", "\\|")


PAGES = {"rayjob.md": rayjob}


def main() -> int:
    """Write every page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, draw in PAGES.items():
        (FOLDER / file).write_text(draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
