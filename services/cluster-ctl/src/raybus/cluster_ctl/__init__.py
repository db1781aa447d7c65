"""Decides about RayClusters."""
