"""The CRDs of ray.io, computed from the types of raybus.api.v1: a pure conversion, never used at run time.

`tools/crdgen/write_crds.py` (`make crds`) feeds it Kubernetes' definitions and writes `charts/raybus-crds/crds/`.
"""
