"""Whole children of a RayJob, one file per kind."""
