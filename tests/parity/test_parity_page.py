"""What KubeRay's test programs print, as verdicts; two runs, as the page."""

import page
import pytest
import suite

OUTPUT = """=== RUN   TestA
    --- PASS: TestA/One (1.50s)
    --- FAIL: TestA/Two (2.00s)
    --- SKIP: TestA/Three (0.00s)
--- FAIL: TestA (4.00s)
"""


@pytest.mark.parametrize(
    ("test", "output", "wanted"),
    [
        (
            "TestA",
            OUTPUT,
            {("TestA/One", "pass"), ("TestA/Two", "fail"), ("TestA/Three", "skip"), ("TestA", "fail")},
        ),
        ("TestA/One", OUTPUT, {("TestA/One", "pass")}),
        ("TestB", "panic: test timed out after 20m0s", {("TestB", "timeout")}),
        ("TestB", "panic: runtime error", {("TestB", "fail")}),
        ("TestB", "", {("TestB", "fail")}),
    ],
)
def test_verdicts(test: str, output: str, wanted: set[tuple[str, str]]) -> None:
    found = suite.verdicts(test, output, 9.0)
    assert {(verdict.test, verdict.result) for verdict in found} == wanted


def _run_of(result: str) -> dict[str, dict[str, object]]:
    return {
        f"{row.package}/{row.test}": {"result": result, "seconds": 2.0, "date": "2026-12-07", "commit": "abc1234"}
        for row in suite.known()
    }


def test_every_test_that_passes_with_kuberay_and_not_here_is_counted() -> None:
    passing = sum(row.result == "pass" for row in suite.known())
    assert page.last_line(_run_of("pass")).endswith("worse_than_kuberay=0")
    assert page.last_line(_run_of("fail")).endswith(f"worse_than_kuberay={passing}")
    assert page.last_line(_run_of("skip")).endswith(f"worse_than_kuberay={passing}")


def test_a_run_is_complete_with_all_units_only() -> None:
    found = _run_of("pass")
    assert page.complete(found)
    package, test = suite.units(suite.known())[0]
    del found[f"{package}/{test}"]
    assert not page.complete(found)


def test_the_page_has_a_row_for_every_test_and_says_which_run_lacks_one() -> None:
    first, second = _run_of("pass"), _run_of("fail")
    gone = next(name for name in second if "/TestRayClusterSuspend" in name)
    del second[gone]
    text = page.page({1: first, 2: second})
    assert text.count("\n| e2e") + text.count("\n| sampleyaml") == len(suite.known())
    assert next(line for line in text.splitlines() if "TestRayClusterSuspend " in line).endswith("| not run |  |")
