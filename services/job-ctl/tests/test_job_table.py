"""The phase table as a whole: complete, reachable, drawn, and the contract's transitions (contract rayjob §2.3)."""

import importlib.util
from pathlib import Path
from types import ModuleType

from raybus.api.v1 import NEW
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.job_ctl.entry import ENTER
from raybus.job_ctl.phases import TABLE

ROOT = Path(__file__).parents[3]

CONTRACT = {
    (NEW, P.INITIALIZING),
    (NEW, P.VALIDATION_FAILED),
    (P.INITIALIZING, P.FAILED),
    (P.INITIALIZING, P.RUNNING),
    (P.INITIALIZING, P.VALIDATION_FAILED),
    (P.RUNNING, P.FAILED),
    (P.RUNNING, P.COMPLETE),
    (P.RUNNING, P.VALIDATION_FAILED),
    (P.FAILED, P.RETRYING),
    (P.RETRYING, NEW),
    (P.RETRYING, P.VALIDATION_FAILED),
    (P.COMPLETE, P.VALIDATION_FAILED),
    (P.FAILED, P.VALIDATION_FAILED),
}
"""The contract's transitions without those of InteractiveMode and suspend, which are to come."""
LEFT_OUT = {(phase, P.VALIDATION_FAILED) for phase in (P.RETRYING, P.COMPLETE, P.FAILED)}
"""ADR 0060: what has ended, or is being cleaned up, is not refused any more."""


def diagrams() -> ModuleType:
    """tools/diagrams.py, a script and no package."""
    found = importlib.util.spec_from_file_location("diagrams", ROOT / "tools" / "diagrams.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def pairs(adr: bool) -> set[tuple[str, str]]:
    return {(phase, row.to) for phase, rows in TABLE.items() for row in rows if bool(row.adr) == adr}


def test_the_transitions_are_those_of_the_contract() -> None:
    assert pairs(adr=False) == CONTRACT - LEFT_OUT


def test_every_row_that_kuberay_lacks_names_an_adr_that_exists() -> None:
    assert pairs(adr=True)
    for rows in TABLE.values():
        for row in rows:
            assert not row.adr or list((ROOT / "docs" / "adr").glob(f"{row.adr}-*.md")), row


def test_every_phase_can_be_reached_entered_and_is_in_the_table() -> None:
    reached, frontier = {NEW}, [NEW]
    while frontier:
        for row in TABLE[frontier.pop()]:
            if row.to not in reached:
                reached.add(row.to)
                frontier.append(row.to)
    assert reached == set(TABLE) == set(ENTER)


def test_every_guard_says_when_it_holds() -> None:
    assert all(row.guard.__doc__ for rows in TABLE.values() for row in rows)


def test_the_drawn_pages_are_current() -> None:
    module = diagrams()
    for file, draw in module.PAGES.items():
        assert (module.FOLDER / file).read_text(encoding="utf-8") == draw(), "run `make diagrams`"
