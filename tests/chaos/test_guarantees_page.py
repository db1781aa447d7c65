"""`docs/guarantees.md` names tests, planted bugs and faults; all of them exist."""

import re
from pathlib import Path

import faults

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()


def test_every_test_on_the_page_exists() -> None:
    named = re.findall(r"`([\w/.-]+\.py)::(\w+)`", PAGE)
    assert len(named) > 30
    assert [name for path, name in named if f"def {name}(" not in (ROOT / path).read_text()] == []


def test_every_planted_bug_on_the_page_exists() -> None:
    planted = (ROOT / "tests" / "sim" / "planted.py").read_text()
    lists = re.findall(r"planted ((?:`\w+`(?:, )?)+)", PAGE)
    names = {name for each in lists for name in re.findall(r"\w+", each)}
    assert len(names) > 15
    assert [name for name in names if f"def {name}(" not in planted] == []


def test_every_fault_of_chaos_is_on_the_page() -> None:
    assert [kind for kind in faults.KINDS if f"`{kind}`" not in PAGE] == []
