"""The admission policies on a real API server: they refuse what `decide` refuses, in its words, and nothing else."""

import json
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from raybus.api.rules import Cel, Chain, Each, Policy, Rule, broken, flat
from raybus.api.v1 import RayCluster, RayJob
from raybus.cluster_ctl.validate.chain import POLICY as RAYCLUSTERS
from raybus.dev.errors import DevError
from raybus.dev.kubectl import Kubectl
from raybus.dev.process import direct_environment
from raybus.job_ctl.asked import Asked
from raybus.job_ctl.settings import JobKnobs
from raybus.job_ctl.validate import POLICY as RAYJOBS
from raybus.testkit import refused_clusters, refused_jobs

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "raybus-admission" / "templates"
LABEL, MARK = "raybus.test/admission", "raybus.test/case"
REFUSED = re.compile(r'error when creating "[^"]*/(?P<case>\d+)\.json": (?P<why>.*)')
DENIED = re.compile(r"ValidatingAdmissionPolicy .* denied request: (?P<sentence>.*)")

Node = dict[str, Any]


def golden() -> Iterator[tuple[str, Node]]:
    """RayClusters and RayJobs of the recordings' inputs."""
    for path in sorted((ROOT / "tests" / "golden" / "inputs").glob("*.yaml")):
        if not path.name.endswith(".steps.yaml"):
            for body in yaml.safe_load_all(path.read_text(encoding="utf-8")):
                if body and body.get("kind") in ("RayCluster", "RayJob"):
                    yield path.name, body


def all_cases() -> list[tuple[str, Node]]:
    """(what it is, object) of every table of cases."""
    return [
        *((name, case.body()) for name, case in refused_clusters.CASES.items()),
        *((name, refused_clusters.Case(spec, "").body()) for name, spec in refused_clusters.FINE.items()),
        *((name, refused_jobs.body(**fields)) for name, fields, _ in refused_jobs.CASES),
        *((name, refused_jobs.body(name=value)) for name, value in refused_jobs.NAMES.items()),
        *(
            (f"no spec: {kind}", {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "x"}})
            for kind in ("RayCluster", "RayJob")
        ),
        *golden(),
    ]


CASES = all_cases()


class Sender(NamedTuple):
    """Sends cases as a user does, without storing anything."""

    kubectl: Kubectl
    namespace: str
    folder: Path

    def _apply(self, *flags: str) -> "subprocess.CompletedProcess[str]":
        command = [str(self.kubectl.program), f"--kubeconfig={self.kubectl.kubeconfig}", "apply", "--dry-run=server"]
        return subprocess.run(
            [*command, "-n", self.namespace, "-f", str(self.folder), *flags],
            env=direct_environment(),
            capture_output=True,
            text=True,
            check=False,
        )

    def put(self, numbers: list[int]) -> None:
        """Lay the files of these cases out."""
        for old in self.folder.glob("*.json"):
            old.unlink()
        for number in numbers:
            body = CASES[number][1]
            labels = {**(body["metadata"].get("labels") or {}), MARK: str(number)}
            marked = {**body, "metadata": {**body["metadata"], "labels": labels}}
            (self.folder / f"{number}.json").write_text(json.dumps(marked), encoding="utf-8")

    def refused(self, numbers: list[int]) -> dict[int, str]:
        """Case -> the API server's words, for each that it refuses."""
        self.put(numbers)
        done = self._apply()
        found = {int(match["case"]): match["why"] for match in REFUSED.finditer(done.stderr)}
        assert len(done.stdout.splitlines()) + len(found) == len(numbers), done.stderr
        return found

    def stored(self, numbers: list[int]) -> dict[int, Node]:
        """Case -> the object as it would be stored."""
        self.put(numbers)
        done = self._apply("-o", "json")
        assert done.returncode == 0, done.stderr
        return {int(item["metadata"]["labels"][MARK]): item for item in json.loads(done.stdout)["items"]}


class Answers(NamedTuple):
    """By case: what the schema refuses, what would be stored without it, and what the policies say of that."""

    schema: dict[int, str]
    stored: dict[int, Node]
    policy: dict[int, str]


def policies(namespace: str) -> list[Node]:
    """The chart's objects, under names of their own and for one namespace only."""
    found = [body for path in sorted(CHART.glob("*.yaml")) for body in yaml.safe_load_all(path.read_text())]
    for body in found:
        body["metadata"]["name"] += f"-{namespace}"
        if body["kind"] == "ValidatingAdmissionPolicyBinding":
            body["spec"]["policyName"] += f"-{namespace}"
            body["spec"]["matchResources"] = {"namespaceSelector": {"matchLabels": {LABEL: namespace}}}
    return found


def wait_until_in_force(kubectl: Kubectl, namespace: str) -> None:
    """The API server reads new policies a moment after they were stored."""
    probes = [
        refused_clusters.CASES["a digit first"].body(),
        refused_jobs.body(name="1"),
    ]
    deadline = time.monotonic() + 60
    for body in probes:
        while True:
            try:
                kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=json.dumps(body))
            except DevError as error:
                assert DENIED.search(str(error)), error
                break
            assert time.monotonic() < deadline, f"{body['kind']}: the policy has no effect"
            time.sleep(0.1)


OLD = refused_clusters.Case({"authOptions": {"enableK8sTokenAuth": True}}, "", {"name": "old"}).body()
"""Stored before there was a policy."""


@pytest.fixture(scope="module")
def place(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of this module's own, with a RayCluster that the policies would refuse."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    kubectl("create", "namespace", name)
    kubectl("create", "-n", name, "-f", "-", stdin=json.dumps(OLD))
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def answers(kubectl: Kubectl, place: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """All cases, sent without and with the policies."""
    sender = Sender(kubectl, place, tmp_path_factory.mktemp("cases"))
    schema = sender.refused(list(range(len(CASES))))
    valid = [number for number in range(len(CASES)) if number not in schema]
    stored = sender.stored(valid)
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": policies(place)})
    kubectl("label", "namespace", place, f"{LABEL}={place}")
    kubectl("create", "-f", "-", stdin=manifest)
    try:
        wait_until_in_force(kubectl, place)
        yield Answers(schema, stored, sender.refused(valid))
    finally:
        kubectl("delete", "-f", "-", stdin=manifest)


def in_cel(chain: Chain[Any]) -> list[Rule[Any] | Each[Any, Any]]:
    """What of a chain the API server can check."""
    kept: list[Rule[Any] | Each[Any, Any]] = []
    for entry in chain:
        if isinstance(entry, Each):
            kept.append(entry._replace(rules=tuple(rule for rule in entry.rules if isinstance(rule.cel, Cel))))
        elif isinstance(entry.cel, Cel):
            kept.append(entry)
    return kept


CHAINS = {policy.kind: in_cel(policy.chain) for policy in (RAYCLUSTERS, RAYJOBS)}


def first_broken(body: Node) -> tuple[Rule[Any], str] | None:
    """The rule that speaks first, by `decide`'s own guards on the stored object, and its sentence."""
    if body.get("spec", {}).get("managedBy", "ray.io/kuberay-operator") != "ray.io/kuberay-operator":
        return None
    if body["kind"] == "RayCluster":
        return next(broken(CHAINS["RayCluster"], msgspec.convert(body, RayCluster)), None)
    return next(broken(CHAINS["RayJob"], Asked(msgspec.convert(body, RayJob), JobKnobs())), None)


def test_exactly_the_broken_rules_are_answered_with_their_sentences(answers: Answers) -> None:
    wrong = []
    for number, body in answers.stored.items():
        expected = first_broken(body)
        said = answers.policy.get(number)
        match = DENIED.search(said) if said else None
        if (match["sentence"] if match else said) != (expected[1] if expected else None):
            wrong.append(f"{CASES[number][0]}: expected {expected and expected[1]!r}, got {said!r}")
    assert wrong == []


@pytest.mark.parametrize("policy", [RAYCLUSTERS, RAYJOBS], ids=lambda policy: policy.kind)
def test_every_rule_in_cel_has_refused_something(policy: Policy[Any], answers: Answers) -> None:
    found = (first_broken(answers.stored[number]) for number in answers.policy)
    spoken = [pair[0] for pair in found if pair is not None]
    silent = [rule.sentence for rule in flat(policy.chain) if isinstance(rule.cel, Cel) and rule not in spoken]
    assert silent == []


ACCEPTED = {
    "rc-bad-ft-rocksdb-gate.yaml": "feature gate",
    "rc-bad-np-gate.yaml": "feature gate",
    "rc-bad-tls-gate.yaml": "feature gate",
    "rj-bad-runtime-env.yaml": "YAML in a text",
    "rj-bad-cluster-spec.yaml": "told on the RayCluster that is made of it",
}
"""Bad recordings that the API server takes, and why."""


def test_every_other_bad_recording_is_refused(answers: Answers) -> None:
    refused = answers.schema.keys() | answers.policy.keys()
    bad = {number: name for number, (name, _) in enumerate(CASES) if re.match("r[cj]-bad-", name)}
    assert {name for number, name in bad.items() if number not in refused} == ACCEPTED.keys()


def test_what_is_not_about_the_spec_passes(answers: Answers, kubectl: Kubectl, place: str) -> None:
    at = ("raycluster", "old", "-n", place, "--type=merge")
    kubectl("patch", *at, "-p", '{"metadata": {"labels": {"a": "b"}, "finalizers": ["raybus.test/hold"]}}')
    kubectl("patch", *at, "--subresource=status", "-p", '{"status": {"state": "ready"}}')
    change = '{"spec": {"rayVersion": "2.52.0"}}'
    with pytest.raises(DevError, match="enableK8sTokenAuth needs mode token"):
        kubectl("patch", *at, "-p", change)
    kubectl("delete", "raycluster", "old", "-n", place, "--wait=false")
    kubectl("patch", *at, "-p", change)
    kubectl("patch", *at, "-p", '{"metadata": {"finalizers": null}}')


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob"])
def test_an_object_of_another_manager_is_left_alone(kind: str, answers: Answers, kubectl: Kubectl, place: str) -> None:
    whole = refused_clusters.NAMES["a digit first"].body() if kind == "RayCluster" else refused_jobs.body(name="1")
    whole["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    kubectl("create", "--dry-run=server", "-n", place, "-f", "-", stdin=json.dumps(whole))


def test_another_namespace_is_not_touched(answers: Answers, kubectl: Kubectl, namespace: str) -> None:
    body = refused_clusters.CASES["a digit first"].body()
    kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=json.dumps(body))
