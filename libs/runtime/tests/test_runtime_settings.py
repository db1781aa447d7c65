"""Settings: four sources, their order, KubeRay's names, and what a wrong value says."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from raybus.runtime.common import CommonSettings
from raybus.runtime.gates import read_gates
from raybus.runtime.kuberay import FOREIGN, Foreign, without_effect
from raybus.runtime.settings import SettingsError, explain, load, setting


@dataclass(frozen=True, kw_only=True)
class Example:
    """A dataclass as services have it."""

    metrics_addr: str = setting(":8080", "Listener.")
    domain: str = setting("cluster.local", "Cluster domain.", env=("CLUSTER_DOMAIN",), keys=("clusterDomain",))
    probes: bool = setting(True, "Inject probes.", env=("ENABLE_PROBES_INJECTION",))
    qps: float = setting(100.0, "Requests per second.")
    names: tuple[str, ...] = setting((), "Namespaces.")
    encoder: Literal["json", "console"] = setting("json", "Form.", flags=("log-encoder",))
    token: str = setting("", "Password.", secret=True)


def test_flags_win_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("metricsAddr: ':1'\nqps: 7\nclusterDomain: from.file\n")
    environment = {"CLUSTER_DOMAIN": "from.env", "RAYBUS_METRICS_ADDR": ":2"}
    found = {f.name: f for f in explain(Example, [f"--config={file}", "--metrics-addr", ":3"], environment)}
    assert (found["metrics_addr"].value, found["metrics_addr"].source) == (":3", "flag --metrics-addr")
    assert (found["domain"].value, found["domain"].source) == ("from.env", "environment CLUSTER_DOMAIN")
    assert (found["qps"].value, found["qps"].source) == (7.0, f"file {file}")
    assert (found["probes"].value, found["probes"].source) == (True, "default")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["--probes=false"], False), (["-probes=False"], False), (["--probes"], True), (["--probes=1"], True)],
    ids=["double dash", "one dash as Go allows", "bare", "number"],
)
def test_booleans_are_written_as_go_programs_take_them(arguments: list[str], expected: bool) -> None:
    assert load(Example, arguments, {}).probes is expected


def test_lists_are_comma_separated_and_blanks_do_not_count() -> None:
    assert load(Example, ["--names=a, b,"], {}).names == ("a", "b")


def test_kuberay_configuration_file_is_read_and_its_unknown_fields_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: config.ray.io/v1alpha1\nkind: Configuration\nmetricsAddr: ':9'\nburst: 3\n")
    assert load(Example, ["--config", str(file)], {}).metrics_addr == ":9"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--nope=1"], "unknown flag --nope"),
        (["stray"], "unexpected argument 'stray'"),
        (["--qps=fast"], "qps (flag --qps)"),
        (["--probes=maybe"], "'maybe' is not true or false"),
        (["--log-encoder=xml"], "encoder (flag --encoder)"),
        (["--qps"], "flag --qps needs a value"),
        (["--config=/does/not/exist"], "cannot be read"),
    ],
    ids=[
        *("unknown flag", "no flag", "no number", "no boolean", "not in the list", "no value", "no file"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_and_source(arguments: list[str], says: str) -> None:
    with pytest.raises(SettingsError, match=says.replace("(", r"\(").replace(")", r"\)")):
        load(Example, arguments, {})


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "kind: Pod\n"], ids=["a list", "no YAML", "another kind"])
def test_a_wrong_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match="settings file"):
        load(Example, ["--config", str(file)], {})


def test_gates_keep_their_defaults_and_take_what_is_built() -> None:
    assert read_gates("")["RayClusterStatusConditions"] is True
    assert read_gates("RayClusterStatusConditions=false, RayCronJob=false")["RayClusterStatusConditions"] is False


@pytest.mark.parametrize(
    ("text", "says"),
    [("Nope=true", "unknown"), ("RayCronJob=maybe", "not true or false"), ("RayCronJob=true", "does not have")],
    ids=["unknown gate", "no boolean", "not built yet"],
)
def test_a_gate_that_would_be_ignored_is_refused(text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        read_gates(text)


def test_groups_of_gates_leave_those_alone_that_are_named() -> None:
    gates = read_gates("AllBeta=false,RayMultiHostIndexing=true,AllAlpha=false")
    assert gates["RayClusterStatusConditions"] is False and gates["RayMultiHostIndexing"] is True
    with pytest.raises(SettingsError, match="does not have"):
        read_gates("AllAlpha=true")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--feature-gates=Nope=true"], "feature gate 'Nope' is unknown"),
        (["--metrics-addr=8080"], "no host:port"),
        (["--health-probe-bind-address=:http"], "no host:port"),
    ],
    ids=["a gate", "a port alone", "a port by name"],
)
def test_values_are_checked_when_they_are_read(arguments: list[str], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        load(CommonSettings, arguments, {})


def test_an_empty_variable_is_not_set() -> None:
    assert load(Example, [], {"ENABLE_PROBES_INJECTION": "", "CLUSTER_DOMAIN": ""}) == Example()


def test_what_kuberay_needs_and_raybus_does_not_is_read_and_said() -> None:
    arguments = ["--enable-leader-election", "--qps", "50", "--names=a", "--use-kubernetes-proxy", "-kubeconfig=/x"]
    environment = {"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV": "60"}
    assert load(Example, arguments, environment).names == ("a",)
    said = dict(without_effect(arguments, environment))
    assert said.keys() == {"--enable-leader-election", "RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV"} | {"--qps"}


@pytest.mark.parametrize("item", [i for i in FOREIGN if i.refused], ids=lambda item: item.names[0])
def test_what_would_have_to_be_ignored_is_refused_wherever_it_stands(tmp_path: Path, item: Foreign) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"{item.key or 'other'}: true\n")
    ways = [([f"--{item.flag}=true"], {}) if item.flag else ([], {item.variable: "true"})]
    if item.key:
        ways.append(([f"--config={file}"], {}))
    for arguments, environment in ways:
        with pytest.raises(SettingsError, match="is not supported: "):
            load(Example, arguments, environment)


def test_log_file_that_is_off_is_no_matter(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("logFile: ''\n")
    assert load(Example, [f"--config={file}"], {"ENABLE_WEBHOOKS": "false"}) == Example()
