"""Kubernetes requests, sending, list and watch."""
