"""Decides about RayServices."""
