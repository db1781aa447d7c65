"""Labels, names and fixed values of a RayJob and its children (contract rayjob §0); tools read them."""

CLUSTER = "ray.io/cluster"
NODE_TYPE = "ray.io/node-type"
IDENTIFIER = "ray.io/identifier"
ORIGIN_NAME = "ray.io/originated-from-cr-name"
ORIGIN_KIND = "ray.io/originated-from-crd"
SUBMISSION_MODE = "ray.io/job-submission-mode"
APP_NAME = "app.kubernetes.io/name"
CREATED_BY = "app.kubernetes.io/created-by"
JOB_NAME = "batch.kubernetes.io/job-name"

APP, CREATOR = "kuberay", "kuberay-operator"
FINALIZER = "ray.io/rayjob-finalizer"
OUR_MANAGER = "ray.io/kuberay-operator"
MAX_NAME = 47
DASHBOARD_PORT = "dashboard"
SUBMITTER_CONTAINER = "ray-job-submitter"


def head_service(owner: str) -> str:
    """Name of the generated head Service of a RayJob or RayCluster."""
    return f"{owner}-head-svc"


def label_value(text: str) -> str:
    """The last 63 characters; a leading punctuation mark becomes `r` (contract objects §0.3)."""
    text = text[-63:]
    return text if text[:1].isalnum() else "r" + text[1:]


def origin(rayjob: str) -> dict[str, str]:
    """The two labels that name the RayJob behind an object."""
    return {ORIGIN_NAME: rayjob, ORIGIN_KIND: "RayJob"}
