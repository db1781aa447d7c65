"""Which RayClusters are refused, as named chains of checks in a fixed order (contract objects §7.2)."""

from raybus.cluster_ctl.validate.chain import invalid_metadata, invalid_spec

__all__ = ["invalid_metadata", "invalid_spec"]
