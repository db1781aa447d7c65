"""The `ray start` line: parameters, resources of group and container, form (contract objects §2.3-§2.5)."""

from typing import Any

import pytest

from raybus.cluster_ctl.build.command import ray_start, set_command
from raybus.cluster_ctl.build.start_params import head_params, with_container, worker_params

DEFAULTS = {"metrics-export-port": "8080", "dashboard-agent-listen-port": "52365", "block": "true"}


def container(limits: dict[str, Any] | None = None, requests: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"resources": {"limits": limits or {}, "requests": requests or {}}}


def test_a_head_listens_for_everyone_and_blocks() -> None:
    assert head_params({"block": "false"}, {}, {}) == {**DEFAULTS, "dashboard-host": "0.0.0.0"}


def test_a_worker_goes_to_the_head_unless_told_otherwise() -> None:
    assert worker_params({}, {}, {}, "h:6379") == {**DEFAULTS, "address": "h:6379"}
    assert worker_params({"address": "x:1"}, {}, {}, "h:6379")["address"] == "x:1"


GROUP = {
    "cpu, memory and gpu have flags of their own, rounded up": (
        {"CPU": "1500m", "Memory": "1Gi", "nvidia.com/gpu": "1"},
        {"num-cpus": "2", "memory": "1073741824", "num-gpus": "1"},
    ),
    "anything else keeps its case and becomes JSON": (
        {"Special": "2", "half": "500m"},
        {"resources": """'{"Special":2,"half":0.5}'"""},
    ),
    "what cannot be read is skipped": ({"cpu": "many", "a": "1"}, {"resources": """'{"a":1}'"""}),
}


@pytest.mark.parametrize(("resources", "params"), GROUP.values(), ids=GROUP)
def test_resources_of_a_group(resources: dict[str, str], params: dict[str, str]) -> None:
    assert head_params({}, resources, {}) == {**DEFAULTS, "dashboard-host": "0.0.0.0", **params}


def test_labels_of_a_group_are_one_flag_in_name_order() -> None:
    assert head_params({}, {}, {"b": "2", "a": "1"})["labels"] == "a=1,b=2"


CONTAINER = {
    "the cpu limit is rounded up": ({}, container({"cpu": "1500m"}), {"num-cpus": "2"}),
    "a cpu request stands in for a limit": ({}, container(None, {"cpu": "700m"}), {"num-cpus": "1"}),
    "a memory request does not": ({}, container(None, {"memory": "1Gi"}), {}),
    "numbers without quotes are read too": ({}, container({"cpu": 2}), {"num-cpus": "2"}),
    "given parameters win": ({"num-cpus": "0"}, container({"cpu": "4"}), {"num-cpus": "0"}),
    "the first gpu in name order counts": ({}, container({"b/gpu": "2", "a/gpu": "1"}), {"num-gpus": "1"}),
    "a mig slice is a gpu": ({}, container({"nvidia.com/mig-1g.5gb": "3"}), {"num-gpus": "3"}),
    "one custom accelerator": (
        {},
        container({"google.com/tpu": "4", "aws.amazon.com/neuroncore": "2"}),
        {"resources": """'{"neuron_cores":2}'"""},
    ),
    "an accelerator joins what is given": (
        {"resources": '"{"custom_resource":2}"'},
        container({"aws.amazon.com/neuroncore": "4"}),
        {"resources": """'{"custom_resource":2,"neuron_cores":4}'"""},
    ),
    "broken resources stop the search for gpus": (
        {"resources": "not json"},
        container({"nvidia.com/gpu": "2"}),
        {"resources": "not json"},
    ),
}


@pytest.mark.parametrize(("given", "ray", "params"), CONTAINER.values(), ids=CONTAINER)
def test_what_the_container_offers(given: dict[str, str], ray: dict[str, Any], params: dict[str, str]) -> None:
    assert with_container(given, ray) == params


LINES = {
    "flags stand in name order between blanks": ({"b": "1", "a": "x y"}, "ray start  --a=x y  --b=1 "),
    "true is a bare flag, in any case": ({"block": "True"}, "ray start  --block "),
    "false vanishes": ({"x": "False"}, "ray start "),
    "some flags always have a value": ({"include-dashboard": "true"}, "ray start  --include-dashboard=true "),
}


@pytest.mark.parametrize(("params", "line"), LINES.values(), ids=LINES)
def test_form_of_the_line(params: dict[str, str], line: str) -> None:
    assert ray_start(params, head=False) == line


def test_the_example_of_the_contract() -> None:
    params = with_container(head_params({}, {}, {}), container({"cpu": "1", "memory": "5Gi"}))
    assert ray_start(params, head=True) == (
        "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0"
        "  --memory=5368709120  --metrics-export-port=8080  --num-cpus=1 "
    )


COMMANDS: dict[str, tuple[dict[str, Any], dict[str, str], Any]] = {
    "without a command of its own the container starts Ray": ({}, {}, ["ulimit"]),
    "the user's command goes first": ({"command": ["echo", "a"]}, {}, [" echo  a  && ulimit"]),
    "the annotation leaves the command alone": (
        {"command": ["x"]},
        {"ray.io/overwrite-container-cmd": "TRUE"},
        None,
    ),
    "a command that starts Ray is left alone": ({"args": ["a && ray start --head"]}, {}, None),
    "the two words apart are not Ray's start": ({"command": ["ray", "start"]}, {}, [" ray  start  && ulimit"]),
}


@pytest.mark.parametrize(("own", "annotations", "args"), COMMANDS.values(), ids=COMMANDS)
def test_command(own: dict[str, Any], annotations: dict[str, str], args: list[str] | None) -> None:
    ray = dict(own)
    set_command(ray, "ray start ", annotations, login=False)
    if args is None:
        assert ray == own
    else:
        assert ray["command"] == ["/bin/bash", "-c", "--"]
        assert ray["args"][0].startswith(args[0]) and ray["args"][0].endswith("; ray start ")


def test_a_login_shell_on_request() -> None:
    ray: dict[str, Any] = {}
    set_command(ray, "ray start ", {}, login=True)
    assert ray["command"] == ["/bin/bash", "-cl", "--"]
