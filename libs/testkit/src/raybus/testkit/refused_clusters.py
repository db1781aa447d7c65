"""RayClusters that break one rule each, for `decide` and for the API server; all feature gates are meant to be open."""

from __future__ import annotations

from typing import Any, NamedTuple

from raybus.testkit.rayclusters import Json, group, template

V2: Json = {"autoscalerOptions": {"version": "v2"}}
AUTOSCALED_V2: Json = {"enableInTreeAutoscaling": True, **V2}
_V2_ENV = {"name": "RAY_enable_autoscaler_v2", "value": "1"}
_TLS: Json = {"tlsOptions": {"enabled": True}}
_FT: Json = {"gcsFaultToleranceOptions": {}}
_NEVER_ENDS = {"spec": {**template()["spec"], "restartPolicy": "Always"}}
_COLLECTOR = "historyServerOptions.collectorOptions"
RESERVED_BY_COLLECTOR = (
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
)


class Case(NamedTuple):
    """`says`: part of the sentence that the user gets. `metadata`: labels, annotations, or another name than `c`."""

    spec: Json
    says: str
    metadata: Json | None = None

    def body(self) -> Json:
        """The RayCluster as a user would write it."""
        metadata = {"name": "c", **(self.metadata or {})}
        spec = {"headGroupSpec": {"template": template()}, **self.spec}
        return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}


def env_head(*env: Json, **spec: Any) -> Json:
    """A head with these variables."""
    return {"headGroupSpec": {"template": template(env=list(env))}, **spec}


def head(**fields: Any) -> Json:
    """A head with more fields."""
    return {"headGroupSpec": {"template": template(), **fields}}


def groups(*found: Json, **spec: Any) -> Json:
    """Worker groups."""
    return {"workerGroupSpecs": list(found), **spec}


def worker(**fields: Any) -> Json:
    """One worker group."""
    return groups(group("w", 1, **fields))


def params(**values: str) -> Json:
    """Start parameters of the head; `_` stands for `-`."""
    return head(rayStartParams={name.replace("_", "-"): value for name, value in values.items()})


def env(**values: str) -> list[Json]:
    """Variables of a container."""
    return [{"name": name, "value": value} for name, value in values.items()]


def collector(image: str = "example.test/collector:1", **values: str) -> Json:
    """The history server's collector with these variables."""
    return {"historyServerOptions": {"collectorOptions": {"image": image, "env": env(**values)}}}


def rocksdb(**options: Any) -> Json:
    """Embedded fault tolerance with more options."""
    return {"gcsFaultToleranceOptions": {"backend": "rocksdb", **options}}


def _policy(mode: str, **parts: Any) -> Json:
    return {"networkPolicy": {"mode": mode, **parts}}


NAMES: dict[str, Case] = {
    "a long name": Case({}, "no more than 53 characters", {"name": "a" * 54}),
    "a digit first": Case({}, "start with a letter", {"name": "1a"}),
    "a dot": Case({}, "lower case letters", {"name": "a.b"}),
}

GROUPS: dict[str, Case] = {
    "a head without containers": Case(
        {"headGroupSpec": {"template": {"spec": {"containers": []}}}}, "headGroupSpec should"
    ),
    "a head without a pod": Case(
        {"headGroupSpec": {"template": {}}}, "headGroupSpec should have at least one container"
    ),
    "a group without containers": Case(worker(template={}), "worker group w should have at least one container"),
    "a negative least": Case(worker(minReplicas=-1), "worker group w has negative minReplicas -1"),
    "a negative most": Case(worker(maxReplicas=-2), "worker group w has negative maxReplicas -2"),
    "bounds the wrong way round": Case(
        worker(minReplicas=3, maxReplicas=1), "minReplicas 3 greater than maxReplicas 1"
    ),
    "no bound without autoscaling": Case(worker(maxReplicas=None), "both minReplicas and maxReplicas"),
    "resources of the head twice": Case(
        head(resources={"cpu": "1"}, rayStartParams={"num-cpus": "1", "memory": "1"}),
        "rayStartParams num-cpus, memory:",
    ),
    "resources of a group twice": Case(
        worker(resources={"x": "1"}, rayStartParams={"resources": "{}"}), "group w sets both"
    ),
    "labels as a start parameter": Case(params(labels="a=b"), "headGroupSpec: rayStartParams must not contain labels"),
    "two labels that are none": Case(
        worker(labels={"d": "e f", "a b": "c", "ok": "fine"}),
        "worker group w: label key 'a b' is not a qualified name; label 'd' has an invalid value 'e f'",
    ),
    "a label whose key and value are none": Case(head(labels={"/x": "-"}), "label '/x' has an invalid value '-'"),
    "a label with a long prefix": Case(head(labels={f"{'a' * 254}/b": ""}), "is not a qualified name"),
    "a label with a long name": Case(head(labels={"a" * 64: ""}), "is not a qualified name"),
    "a negative idle timeout": Case(worker(idleTimeoutSeconds=-5) | V2, "negative idleTimeoutSeconds -5"),
    "idle timeout without v2": Case(
        worker(idleTimeoutSeconds=5), "idleTimeoutSeconds, which needs autoscaler version v2"
    ),
    "priority on an old Ray": Case(worker(priority=1) | V2 | {"rayVersion": "2.55.1"}, "rayVersion 2.56.0"),
    "priority on a Ray that says nothing": Case(worker(priority=1) | V2, "rayVersion 2.56.0"),
    "priority without v2": Case(
        worker(priority=1) | {"rayVersion": "v3.0"}, "priority, which needs autoscaler version v2"
    ),
    "two groups of one name": Case(groups(group("a", 1), group("w", 1), group("w", 1)), "repeated: w"),
    "the first wrong group counts": Case(
        groups(group("a", 1, priority=1), group("b", 1, template={})), "worker group a sets priority"
    ),
}

FAULT_TOLERANCE: dict[str, Case] = {
    "annotation and options": Case(_FT, "cannot both be set", {"annotations": {"ray.io/ft-enabled": "false"}}),
    "a Redis address without fault tolerance": Case(env_head(*env(RAY_REDIS_ADDRESS="x")), "needs GCS fault tolerance"),
    "a Redis address with the annotation off": Case(
        env_head(*env(RAY_REDIS_ADDRESS="x")), "needs GCS fault", {"annotations": {"ray.io/ft-enabled": "no"}}
    ),
    "a password as parameter": Case(params(redis_password="x") | _FT, "redis-password in rayStartParams"),
    "a password in the environment": Case(env_head(*env(REDIS_PASSWORD="x"), **_FT), "cannot set REDIS_PASSWORD"),
    "an address in the environment": Case(env_head(*env(RAY_REDIS_ADDRESS="x"), **_FT), "cannot set RAY_REDIS_ADDRESS"),
    "a namespace as annotation": Case(
        _FT, "external-storage-namespace annotation", {"annotations": {"ray.io/external-storage-namespace": "x"}}
    ),
    "a Redis user as parameter": Case(params(redis_username="x"), "redisUsername"),
    "a Redis user in the environment": Case(env_head(*env(REDIS_USERNAME="x")), "redisUsername"),
    "RocksDB with an address": Case(rocksdb(redisAddress="x"), "redisAddress cannot be set"),
    "RocksDB with a user": Case(rocksdb(redisUsername={"value": "x"}), "redisUsername cannot be set"),
    "RocksDB with a password": Case(rocksdb(redisPassword={}), "redisPassword cannot be set"),
    "RocksDB with a namespace": Case(rocksdb(externalStorageNamespace="x"), "externalStorageNamespace cannot be set"),
    "a claim and its settings": Case(
        rocksdb(storage={"claimName": "x", "size": "1Gi", "storageClassName": "y", "accessModes": ["ReadWriteOnce"]}),
        "storage: size, storageClassName, accessModes cannot be set together with claimName",
    ),
    "RocksDB's variable": Case(env_head(*env(RAY_gcs_storage="x"), **rocksdb()), "RAY_gcs_storage in the head's"),
    "RocksDB's path": Case(env_head(*env(RAY_gcs_storage_path="x"), **rocksdb()), "RAY_gcs_storage_path in the head's"),
    "RocksDB's mount": Case(
        {"headGroupSpec": {"template": template(volumeMounts=[{"name": "x", "mountPath": "/data/gcs"}])}, **rocksdb()},
        "mounts named gcs-storage",
    ),
    "RocksDB's volume": Case(
        {
            "headGroupSpec": {"template": {"spec": {**template()["spec"], "volumes": [{"name": "gcs-storage"}]}}},
            **rocksdb(),
        },
        "a volume named gcs-storage",
    ),
    "storage for Redis": Case({"gcsFaultToleranceOptions": {"storage": {}}}, "only be set with backend rocksdb"),
}

AUTOSCALER: dict[str, Case] = {
    "the autoscaler's variable without autoscaling": Case(env_head(_V2_ENV), "while enableInTreeAutoscaling is off"),
    "a suspended group of an autoscaled cluster": Case(
        worker(suspend=True) | {"enableInTreeAutoscaling": True}, "worker group w cannot be suspended"
    ),
    "version and variable": Case(env_head(_V2_ENV, **AUTOSCALED_V2), "both autoscalerOptions.version and"),
    "a head that starts again": Case(
        {"headGroupSpec": {"template": _NEVER_ENDS}, **AUTOSCALED_V2}, "headGroupSpec: restartPolicy must be Never"
    ),
    "workers that start again, by the variable": Case(
        env_head(_V2_ENV, enableInTreeAutoscaling=True, **worker(template=_NEVER_ENDS)), "worker group w: restartPolicy"
    ),
    "a negative timeout for all": Case(
        {"autoscalerOptions": {"idleTimeoutSeconds": -1}}, "must not be negative, got -1"
    ),
    "the command of the autoscaler": Case(
        {"autoscalerOptions": {"env": env(KUBERAY_GEN_AUTOSCALER_START_CMD="x")}}, "must not contain KUBERAY_GEN"
    ),
}

_AZURE = {"STORAGE_BACKEND": "AzureBlob"}
HISTORY: dict[str, Case] = {
    "no collector": Case({"historyServerOptions": {}}, f"{_COLLECTOR} must be set"),
    "no image": Case(collector("", STORAGE_BACKEND="GCS", GCS_BUCKET="x"), f"{_COLLECTOR}.image must be set"),
    **{f"our {name}": Case(collector(**{name: "x"}), f"not contain {name}") for name in RESERVED_BY_COLLECTOR},
    "no backend": Case(collector(), "env must set STORAGE_BACKEND"),
    "GCS without a bucket": Case(collector(STORAGE_BACKEND="gcs"), "GCS_BUCKET for STORAGE_BACKEND gcs"),
    "S3 without a region": Case(collector(STORAGE_BACKEND="S3"), "S3_REGION for STORAGE_BACKEND S3"),
    "OSS without a bucket": Case(collector(STORAGE_BACKEND="AliyunOSS"), "OSS_BUCKET for STORAGE_BACKEND AliyunOSS"),
    "OSS without an endpoint": Case(
        collector(STORAGE_BACKEND="ALIYUNOSS", OSS_BUCKET="x", OSS_REGION="y"), "OSS_ENDPOINT for"
    ),
    "OSS without a region": Case(
        collector(STORAGE_BACKEND="ALIYUNOSS", OSS_BUCKET="x", OSS_ENDPOINT="y"), "OSS_REGION for"
    ),
    "Azure by text": Case(
        collector(**_AZURE, AZURE_STORAGE_AUTH_MODE="connection_string", AZURE_STORAGE_ACCOUNT_URL="x"),
        "must set AZURE_STORAGE_CONNECTION_STRING for",
    ),
    "Azure by identity": Case(
        collector(**_AZURE, AZURE_STORAGE_AUTH_MODE="default", AZURE_STORAGE_CONNECTION_STRING="x"),
        "must set AZURE_STORAGE_ACCOUNT_URL for",
    ),
    "Azure without a mode": Case(collector(**_AZURE), "AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT_URL"),
    "a container of the collector's name": Case(
        collector(STORAGE_BACKEND="other")
        | worker(
            template={"spec": {"containers": [*template()["spec"]["containers"], {"name": "ray-history-collector"}]}}
        ),
        "no container may be called ray-history-collector",
    ),
}

AUTH: dict[str, Case] = {
    "Kubernetes' tokens without mode": Case({"authOptions": {"enableK8sTokenAuth": True}}, "needs mode token"),
    "tokens on an old Ray": Case({"authOptions": {"mode": "token"}, "rayVersion": "2.51.0"}, "rayVersion 2.52.0"),
    "tokens on no Ray": Case({"authOptions": {"mode": "token"}, "rayVersion": "nightly"}, "rayVersion 2.52.0"),
    "Kubernetes' tokens on an old Ray": Case(
        {"authOptions": {"mode": "token", "enableK8sTokenAuth": True}, "rayVersion": "2.54.9"}, "rayVersion 2.55.0"
    ),
    "Kubernetes' tokens and a Secret": Case(
        {"authOptions": {"mode": "token", "enableK8sTokenAuth": True, "secretName": "x"}, "rayVersion": "2.55.0"},
        "enableK8sTokenAuth and secretName",
    ),
}

NETWORK: dict[str, Case] = {
    **{
        f"{field} of {place} in {mode}": Case(
            _policy(mode, **{place: {field: [{}]}}), f"networkPolicy.{place}.{field} cannot be set when mode is {mode}"
        )
        for place in ("head", "worker")
        for mode, field in (("DenyAllEgress", "ingressRules"), ("DenyAllIngress", "egressRules"))
    },
    **{
        f"{field} of a group in {mode}": Case(
            _policy(mode, workerGroups=[{"groupName": "w", field: [{}]}]) | worker(), f"workerGroups[w].{field} cannot"
        )
        for mode, field in (("DenyAllEgress", "ingressRules"), ("DenyAllIngress", "egressRules"))
    },
    "an unknown mode": Case(_policy("Maybe"), "networkPolicy.mode Maybe is not one of"),
    "a group name with a capital": Case({"networkPolicy": {}, **groups(group("W", 1))}, "worker group name W must be"),
    "a policy for an unknown group": Case(
        {"networkPolicy": {"workerGroups": [{"groupName": "x"}]}, **worker()}, "names an unknown group: x"
    ),
    "our variable in the head": Case(
        env_head(*env(RAY_USE_TLS="1"), **_TLS), "RAY_USE_TLS in the environment of the head"
    ),
    "our path in a group": Case(
        worker(template=template(volumeMounts=[{"name": "x", "mountPath": "/etc/ray/tls"}])) | _TLS,
        "cannot mount ray-tls or at /etc/ray/tls in worker group w",
    ),
    "our variable in the autoscaler": Case(
        {"autoscalerOptions": {"env": env(A="1", RAY_TLS_CA_CERT="x")}, **_TLS},
        "RAY_TLS_CA_CERT in the environment of the a",
    ),
    "our volume in the autoscaler": Case(
        {"autoscalerOptions": {"volumeMounts": [{"name": "ray-tls", "mountPath": "/x"}]}, **_TLS}, "in the autoscaler"
    ),
}


def _service(*names: str) -> Json:
    return {"spec": {"ports": [{"name": name, "port": 7000 + number} for number, name in enumerate(names)]}}


REST: dict[str, Case] = {
    "a port that Ray has": Case(head(headService=_service("mine", "serve", "client")), "are added: serve, client"),
    "a port that the container declares": Case(
        {
            "headGroupSpec": {
                "template": template(ports=[{"name": "own", "containerPort": 1}, {"containerPort": 2}]),
                "headService": _service("own", "2-port", "serve"),
            }
        },
        "are added: own, 2-port",
    ),
    "an unknown upgrade": Case({"upgradeStrategy": {"type": "Blue"}}, "upgradeStrategy.type Blue is invalid"),
    "an upgrade of a RayJob's cluster": Case(
        {"upgradeStrategy": {"type": "None"}},
        "created by a RayJob",
        {"labels": {"ray.io/originated-from-crd": "RayJob"}},
    ),
}

CASES: dict[str, Case] = {**NAMES, **GROUPS, **FAULT_TOLERANCE, **AUTOSCALER, **HISTORY, **AUTH, **NETWORK, **REST}
"""What is wrong -> a RayCluster with just that."""

FINE: dict[str, Json] = {
    "options of everything": AUTOSCALED_V2
    | {"rayVersion": "v2.56", "authOptions": {"mode": "token"}}
    | worker(priority=1, idleTimeoutSeconds=0, labels={"example.test/a": "", "b": "C_d.e"}, resources={"x": "1"}),
    "the variable of version 2": env_head(_V2_ENV, enableInTreeAutoscaling=True, **worker(idleTimeoutSeconds=5)),
    "a claim of one's own": rocksdb(storage={"claimName": "x", "subPath": "y"}),
    "a Redis of one's own": env_head(*env(RAY_OTHER="x"), gcsFaultToleranceOptions={"redisAddress": "x"}),
    "a collector for Azure": collector(**_AZURE, AZURE_STORAGE_ACCOUNT_URL="x"),
    "a policy with rules": _policy("DenyAllEgress", head={"egressRules": [{}]}, workerGroups=[{"groupName": "w"}])
    | worker(),
    "TLS": env_head(*env(A="1"), **_TLS),
    "TLS switched off": env_head(*env(RAY_USE_TLS="1"), tlsOptions={"enabled": False}),
    "a hundred groups": groups(*(group(f"w{number}", 1, labels={"a": "b", "c": "d"}) for number in range(100))),
    "a port of one's own": head(headService=_service("mine")),
    "upgrades by hand": {"upgradeStrategy": {"type": "None"}},
}
"""RayClusters that come near to what is refused."""
