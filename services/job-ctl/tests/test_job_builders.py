"""The children of a RayJob, whole (contract rayjob §9.2; the numbers are its scenarios)."""

import json
import shlex
from typing import Any

import msgspec
import pytest
from jobworld import CLUSTER_SPEC, HEAD_TEMPLATE, JOB_ID, URL, initializing, rayjob

from raybus.job_ctl import runtime_env
from raybus.job_ctl.build.cluster import ray_cluster
from raybus.job_ctl.build.head_service import rayjob_head_service
from raybus.job_ctl.build.http_request import submit_request
from raybus.job_ctl.build.submit_script import quote, submit_script
from raybus.job_ctl.build.submitter_job import submitter_job
from raybus.job_ctl.settings import JobKnobs

KUBERAY = JobKnobs(submitter="ray")
ALL_FIELDS: dict[str, Any] = {
    "entrypoint": "  python a.py && echo $HOME ",
    "runtimeEnvYAML": 'env_vars: {A: "x < y", B: "it\'s"}\npip: [numpy]\n',
    "metadata": {"owner": "me", "b": 'q"uote'},
    "entrypointNumCpus": 1.5,
    "entrypointNumGpus": 0.25,
    "entrypointResources": '{"disk": 2}',
}


def job(knobs: JobKnobs = KUBERAY, **fields: Any) -> dict[str, Any]:
    return submitter_job(initializing(**fields).gathered(), URL, JOB_ID, knobs)


def container(knobs: JobKnobs = KUBERAY, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = job(knobs, **fields)["spec"]["template"]["spec"]["containers"][0]
    return found


# ------------------------------------------------------------------ script
def test_64_all_fields_in_the_contracts_order() -> None:
    script = submit_script(rayjob(**ALL_FIELDS).spec, URL, JOB_ID)
    wait, rest = script.split(" done ; ")
    assert wait.startswith('until python -c "') and f"http://{URL}/api/gcs_healthz" in wait and "wget" not in wait
    guard, rest = rest.split(" then ")
    assert guard == f"if ! ray job status --address http://{URL} {JOB_ID} >/dev/null 2>&1 ;"
    submit, rest = rest.split(" -- ")
    words = shlex.split(submit)
    assert words[:6] == ["ray", "job", "submit", "--address", f"http://{URL}", "--no-wait"]
    assert words[6::2] == [
        "--runtime-env-json",
        "--metadata-json",
        "--submission-id",
        "--entrypoint-num-cpus",
        "--entrypoint-num-gpus",
        "--entrypoint-resources",
    ]
    env, metadata, job_id, cpus, gpus, resources = words[7::2]
    assert json.loads(env) == {"env_vars": {"A": "x < y", "B": "it's"}, "pip": ["numpy"]}
    assert json.loads(metadata) == {"b": 'q"uote', "owner": "me"}
    assert (job_id, cpus, gpus, resources) == (JOB_ID, "1.500000", "0.250000", '{"disk": 2}')
    logs = f"ray job logs --address http://{URL} --follow {JOB_ID}"
    assert rest == f"python a.py && echo $HOME ; fi ; {logs}"


def test_an_address_with_scheme_is_not_given_another() -> None:
    assert "http://http://" not in submit_script(rayjob().spec, f"http://{URL}", JOB_ID)


def test_without_options_only_the_id_is_given() -> None:
    submit = submit_script(rayjob().spec, URL, JOB_ID).split(" then ")[1].split(" -- ")[0]
    assert submit == f"ray job submit --address http://{URL} --no-wait --submission-id {JOB_ID}"


def test_70_a_multi_line_runtime_env_survives_the_quoting() -> None:
    text = 'working_dir: "https://example.test/a.zip"\nenv_vars:\n  T: |\n    two\n    lines\tand "quotes" \\ back\n'
    script = submit_script(rayjob(runtimeEnvYAML=text).spec, URL, JOB_ID)
    (word,) = [words for words in shlex.split(script) if words.startswith("{")]
    assert json.loads(word) == runtime_env.parse(text)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes and backslashes"),
        pytest.param("a\n\t\x01", r'"a\n\t\x01"', id="control characters"),
        pytest.param("é\u00a0\U000e0001", '"é\\u00a0\\U000e0001"', id="printable and not printable"),
        pytest.param("$HOME `x`", '"$HOME `x`"', id="the shell still expands, as with KubeRay"),
    ],
)
def test_quoting_is_that_of_go(text: str, quoted: str) -> None:
    assert quote(text) == quoted


# ------------------------------------------------------------------ Job
def test_78_the_default_template_in_kuberays_way() -> None:
    found = job()
    (only,) = found["spec"]["template"]["spec"]["containers"]
    assert found["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert only["name"] == "ray-job-submitter"
    assert only["image"] == "example.test/ray:2.52.0"
    assert only["command"] == ["/bin/bash", "-ce", "--"] and len(only["args"]) == 1
    assert only["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "200Mi"},
    }


def test_the_default_template_with_the_small_submitter() -> None:
    only = container(JobKnobs(submitter_image="x/submitter:1"), **ALL_FIELDS)
    assert (only["name"], only["image"], only["command"]) == ("ray-job-submitter", "x/submitter:1", ["/submitter"])
    assert only["resources"] == container()["resources"]
    flags, entrypoint = only["args"][:-2], only["args"][-1]
    # Kubernetes reads `$$` as `$` (ADR 0029).
    assert only["args"][-2] == "--" and entrypoint == "python a.py && echo $$HOME"
    assert dict(zip(flags[::2], flags[1::2], strict=True)) == {
        "--runtime-env-json": '{"env_vars":{"A":"x \\u003c y","B":"it\'s"},"pip":["numpy"]}',
        "--metadata-json": '{"b":"q\\"uote","owner":"me"}',
        "--entrypoint-resources": '{"disk": 2}',
        "--entrypoint-num-cpus": "1.5",
        "--entrypoint-num-gpus": "0.25",
    }


@pytest.mark.parametrize(
    ("env", "small"),
    [
        pytest.param("working_dir: https://example.test/a.zip", True, id="working_dir at a URL"),
        pytest.param("working_dir: ./src", False, id="working_dir in the image"),
        pytest.param("py_modules: [s3://b/m.zip]", True, id="py_modules at a URL"),
        pytest.param("py_modules: [s3://b/m.zip, mymodule]", False, id="one py_module in the image"),
        pytest.param("pip: [numpy]", True, id="a list of packages"),
        pytest.param("pip: requirements.txt", False, id="a requirements file"),
        pytest.param("conda: environment.yml", False, id="a conda file"),
        pytest.param("conda: my-env", True, id="a conda environment by name"),
    ],
)
def test_local_files_need_the_heads_image(env: str, small: bool) -> None:
    only = container(JobKnobs(), runtimeEnvYAML=env)
    assert only["command"] == (["/submitter"] if small else ["/bin/bash", "-ce", "--"])
    assert (only["image"] == "example.test/ray:2.52.0") is not small


def test_a_login_shell_when_the_operator_wants_one() -> None:
    assert container(JobKnobs(submitter="ray", login_shell=True))["command"] == ["/bin/bash", "-cel", "--"]


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        pytest.param(..., 2, id="127: default"),
        pytest.param({"backoffLimit": 88}, 88, id="127: given"),
        pytest.param({"backoffLimit": 0}, 0, id="none"),
        pytest.param({}, 2, id="empty config"),
    ],
)
def test_backoff_limit(config: Any, limit: int) -> None:
    assert job(submitterConfig=config)["spec"]["backoffLimit"] == limit


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"mine": "1", "ray.io/originated-from-crd": "no"}},
    "spec": {"containers": [{"name": "first", "image": "sub:1", "args": ["lost"]}, {"name": "second"}]},
}


def test_77_a_template_without_command_gets_the_script_and_nothing_else() -> None:
    found = job(JobKnobs(), submitterPodTemplate=TEMPLATE)["spec"]["template"]
    first, second = found["spec"]["containers"]
    assert first["command"] == ["/bin/bash", "-ce", "--"] and "ray job submit" in first["args"][0]
    assert first["image"] == "sub:1" and "resources" not in first and second == {"name": "second"}
    assert "restartPolicy" not in found["spec"]


def test_76_a_template_with_command_keeps_command_and_args() -> None:
    mine = {"name": "m", "command": ["/submitter"], "args": ["--", "x"]}
    only = container(JobKnobs(), submitterPodTemplate={"spec": {"containers": [mine]}})
    assert (only["command"], only["args"]) == (["/submitter"], ["--", "x"])


def test_79_the_environment_is_appended_even_if_it_is_there() -> None:
    mine = {"name": "m", "env": [{"name": "RAY_DASHBOARD_ADDRESS", "value": "mine"}]}
    assert container(submitterPodTemplate={"spec": {"containers": [mine]}})["env"] == [
        {"name": "RAY_DASHBOARD_ADDRESS", "value": "mine"},
        {"name": "PYTHONUNBUFFERED", "value": "1"},
        {"name": "RAY_DASHBOARD_ADDRESS", "value": URL},
        {"name": "RAY_JOB_SUBMISSION_ID", "value": JOB_ID},
    ]


def test_84_85_job_and_pod_template_carry_the_three_labels() -> None:
    labels = {
        "ray.io/originated-from-cr-name": "demo",
        "ray.io/originated-from-crd": "RayJob",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    found = job(submitterPodTemplate=TEMPLATE)
    assert found["metadata"]["labels"] == labels
    assert found["spec"]["template"]["metadata"]["labels"] == {"mine": "1", **labels}


def test_building_changes_nothing_of_the_users_template() -> None:
    view = initializing(submitterPodTemplate=TEMPLATE).gathered()
    before = msgspec.json.encode(view.job.spec.submitter_pod_template)
    submitter_job(view, URL, JOB_ID, KUBERAY)
    assert msgspec.json.encode(view.job.spec.submitter_pod_template) == before


# ------------------------------------------------------------------ RayCluster
def test_129_the_cluster_is_a_copy_with_the_rayjobs_labels_and_annotations() -> None:
    odd = {**CLUSTER_SPEC, "fieldOfTomorrow": {"zero": 0}}
    world = initializing(rayClusterSpec=odd)
    world.meta.update(labels={"team": "x"}, annotations={"note": "y"})
    found = ray_cluster(world.gathered(), "demo-c")
    assert found["spec"] == odd
    assert found["metadata"]["labels"] == {
        "team": "x",
        "ray.io/originated-from-cr-name": "demo",
        "ray.io/originated-from-crd": "RayJob",
        "ray.io/job-submission-mode": "K8sJobMode",
    }
    assert found["metadata"]["annotations"] == {"note": "y"}
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("RayJob", "uid-demo", True)


# ------------------------------------------------------------------ Service
def service(head: dict[str, Any], cluster_ip: bool = False) -> dict[str, Any]:
    spec = {**CLUSTER_SPEC, "headGroupSpec": {"template": HEAD_TEMPLATE, **head}}
    return rayjob_head_service(initializing(rayClusterSpec=spec).gathered(), "demo-c", cluster_ip)


def test_the_head_service_is_headless_with_rays_ports() -> None:
    spec = service({})["spec"]
    assert (spec["clusterIP"], spec["publishNotReadyAddresses"]) == ("None", True)
    ports = [(p["name"], p["port"]) for p in spec["ports"]]
    numbers = {"client": 10001, "dashboard": 8265, "gcs-server": 6379, "metrics": 8080, "serve": 8000}
    assert ports == sorted(numbers.items())


@pytest.mark.parametrize(
    ("head", "cluster_ip"),
    [
        pytest.param({"serviceType": "NodePort"}, False, id="a type with an address"),
        pytest.param({}, True, id="the operator wants addresses"),
    ],
)
def test_the_head_service_is_not_headless(head: dict[str, Any], cluster_ip: bool) -> None:
    assert not {"clusterIP", "publishNotReadyAddresses"} & service(head, cluster_ip)["spec"].keys()


def test_named_container_ports_take_the_place_of_rays() -> None:
    ports = [{"name": "dashboard", "containerPort": 9000}, {"containerPort": 7}]
    template = {"spec": {"containers": [{"name": "ray", "ports": ports}]}}
    found = [(p["name"], p["port"]) for p in service({"template": template})["spec"]["ports"]]
    assert found == [("7-port", 7), ("dashboard", 9000), ("metrics", 8080)]


def test_a_users_head_service_is_honoured_but_for_its_name_and_selector() -> None:
    mine = {
        "metadata": {"name": "portal", "annotations": {"x": "y"}},
        "spec": {"type": "LoadBalancer", "selector": {"no": "no"}, "ports": [{"name": "mine", "port": 1}]},
    }
    found = service({"headService": mine})
    assert (found["metadata"]["name"], found["metadata"]["annotations"]) == ("demo-head-svc", {"x": "y"})
    assert found["spec"]["type"] == "LoadBalancer" and "clusterIP" not in found["spec"]
    assert found["spec"]["selector"]["ray.io/cluster"] == "demo-c" and "no" not in found["spec"]["selector"]
    assert [p["name"] for p in found["spec"]["ports"]][:2] == ["mine", "client"]


def test_labels_name_the_rayjob_and_the_selector_names_the_cluster() -> None:
    found = service({})
    assert found["metadata"]["labels"]["ray.io/identifier"] == "demo-head"
    assert found["spec"]["selector"]["ray.io/identifier"] == "demo-c-head"


# ------------------------------------------------------------------ HTTP
def test_120_121_the_http_body_has_what_is_given() -> None:
    spec = rayjob(**{**ALL_FIELDS, "submissionMode": "HTTPMode", "entrypointNumCpus": 2.0}).spec
    assert submit_request(spec, JOB_ID) == {
        "entrypoint": "  python a.py && echo $HOME ",
        "submission_id": JOB_ID,
        "runtime_env": {"env_vars": {"A": "x < y", "B": "it's"}, "pip": ["numpy"]},
        "metadata": {"owner": "me", "b": 'q"uote'},
        "entrypoint_num_cpus": 2,
        "entrypoint_num_gpus": 0.25,
        "entrypoint_resources": {"disk": 2},
    }
    assert isinstance(submit_request(spec, JOB_ID)["entrypoint_num_cpus"], int)


def test_the_http_body_leaves_out_what_is_empty() -> None:
    assert submit_request(rayjob().spec, JOB_ID) == {"entrypoint": "python main.py", "submission_id": JOB_ID}
