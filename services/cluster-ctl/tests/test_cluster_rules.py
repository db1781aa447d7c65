"""Every rule of a RayCluster, and that each has a case."""

import msgspec
import pytest

from raybus.api.rules import broken, flat
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.validate.chain import POLICY
from raybus.testkit.refused_clusters import CASES, FINE, Case


def typed(case: Case) -> RayCluster:
    return msgspec.convert(case.body(), RayCluster)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_first_broken_rule_speaks(case: Case) -> None:
    _, sentence = next(broken(POLICY.chain, typed(case)))
    assert case.says in sentence


def test_every_rule_has_a_case() -> None:
    seen = [next(broken(POLICY.chain, typed(case)))[0] for case in CASES.values()]
    assert [rule.sentence for rule in flat(POLICY.chain) if rule not in seen] == []


@pytest.mark.parametrize("spec", FINE.values(), ids=FINE)
def test_what_only_comes_near_is_fine(spec: dict[str, object]) -> None:
    assert list(broken(POLICY.chain, typed(Case(spec, "")))) == []
