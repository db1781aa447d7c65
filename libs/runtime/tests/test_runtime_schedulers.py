"""One batch scheduler at most, by whichever name."""

import pytest

from raybus.runtime.common import CommonSettings
from raybus.runtime.gates import read_gates
from raybus.runtime.schedulers import chosen_scheduler
from raybus.runtime.settings import SettingsError, load

CHOICES = {
    "nothing": (("", False, ""), ""),
    "the name": (("volcano", False, ""), "volcano"),
    "the older flag": (("", True, ""), "volcano"),
    "the gate": (("", False, "KubernetesWAS=true"), "kubernetes-was"),
}


@pytest.mark.parametrize(("choice", "found"), CHOICES.values(), ids=CHOICES)
def test_each_way_to_choose(choice: tuple[str, bool, str], found: str) -> None:
    name, old, gates = choice
    assert chosen_scheduler(name, old, read_gates(gates)) == found


CONFLICTS = [
    ["--batch-scheduler=volcano", "--enable-batch-scheduler"],
    ["--batch-scheduler=yunikorn", "--feature-gates=KubernetesWAS=true"],
    ["--enable-batch-scheduler", "--feature-gates=KubernetesWAS=true"],
]


@pytest.mark.parametrize("arguments", CONFLICTS)
def test_two_at_once_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SettingsError, match="use one of them"):
        load(CommonSettings, arguments, {})


@pytest.mark.parametrize("name", ["default", "kube-batch"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="batch"):
        load(CommonSettings, [f"--batch-scheduler={name}"], {})
