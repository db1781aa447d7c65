#!/usr/bin/env python3
"""Write `charts/raybus-crds/crds/*.yaml` from the types of raybus.api.v1 (`make crds`); needs no network."""

import json
import sys
from pathlib import Path

import yaml

from raybus.api.crdgen.crd import RESOURCES, crd_of
from raybus.api.v1 import GROUP

ROOT = Path(__file__).parents[2]
CORE = Path(__file__).with_name("core_schemas.json")
TARGET = ROOT / "charts" / "raybus-crds" / "crds"
HEADER = "# Generated from libs/api by `make crds`: change the types there, not this file.\n"


def rendered() -> dict[str, str]:
    """File name -> YAML text of each CRD."""
    definitions = json.loads(CORE.read_text())["definitions"]
    return {
        f"{GROUP}_{resource.plural}.yaml": HEADER
        + yaml.dump(crd_of(resource, definitions), Dumper=Plain, sort_keys=False, default_flow_style=None, width=120)
        for resource in RESOURCES
    }


class Plain(yaml.CSafeDumper):
    """Writes shared nodes out in full: Kubernetes' tools read no YAML anchors in manifests of this size reliably."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in rendered().items():
        (TARGET / name).write_text(text)
        sys.stdout.write(f"{name}: {len(text) // 1000} kB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
