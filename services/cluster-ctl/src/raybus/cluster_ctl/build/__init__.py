"""Builders of whole children of a RayCluster, one file per idea (contract objects §2-§4)."""
