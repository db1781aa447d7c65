#!/usr/bin/env python3
"""Write `core_schemas.json`: what the CRDs embed of Kubernetes' OpenAPI v3, from the Go module k8s.io/kubernetes.

Run it when Kubernetes is bumped (needs `go`, which checks the module against the checksum database); the result is
committed, so that generating and testing the CRDs needs no network. See ADR 0021.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raybus.api.crdgen.core import REPLACEMENTS, short_name

VERSION = "v1.36.2"
SPECS = ("api__v1_openapi.json", "apis__networking.k8s.io__v1_openapi.json")
ROOTS = (
    "core.v1.PodTemplateSpec",
    "core.v1.Service",
    "core.v1.EnvVar",
    "core.v1.EnvFromSource",
    "core.v1.ResourceRequirements",
    "core.v1.SecurityContext",
    "core.v1.VolumeMount",
    "networking.v1.IngressTLS",
    "networking.v1.NetworkPolicyEgressRule",
    "networking.v1.NetworkPolicyIngressRule",
)
SENTENCE_END = re.compile(r"(?<=[.])\s+(?=[A-Z])|\n")
TARGET = Path(__file__).with_name("core_schemas.json")


def module_folder() -> Path:
    """Folder of the unpacked Go module; raises CalledProcessError when `go` cannot bring it."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{VERSION}"], check=True, stdout=subprocess.PIPE
    )
    return Path(json.loads(done.stdout)["Dir"])


def references(node: Any) -> Iterator[str]:
    """Short names of all definitions that `node` refers to directly."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield short_name(value)
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def summarised(node: Any) -> Any:
    """`node` with each description cut to its first sentence, which is what a CRD has room for."""
    if isinstance(node, dict):
        return {
            key: SENTENCE_END.split(value, maxsplit=1)[0]
            if key == "description" and isinstance(value, str)
            else summarised(value)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [summarised(value) for value in node]
    return node


def closure(definitions: dict[str, Any]) -> dict[str, Any]:
    """ROOTS and everything that they refer to."""
    found: dict[str, Any] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in found and name not in REPLACEMENTS:
            found[name] = definitions[name]
            waiting += references(found[name])
    return dict(sorted(found.items()))


def main() -> int:
    folder = module_folder() / "api" / "openapi-spec" / "v3"
    definitions: dict[str, Any] = {}
    for spec in SPECS:
        schemas = json.loads((folder / spec).read_text())["components"]["schemas"]
        definitions |= {short_name(name): schema for name, schema in schemas.items()}
    found = summarised(closure(definitions))
    content = {
        "source": f"k8s.io/kubernetes {VERSION}, api/openapi-spec/v3",
        "license": "Apache-2.0, Copyright The Kubernetes Authors",
        "definitions": found,
    }
    TARGET.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{TARGET.name}: {len(found)} definitions of {content['source']}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
