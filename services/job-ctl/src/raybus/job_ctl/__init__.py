"""Decides about RayJobs."""
