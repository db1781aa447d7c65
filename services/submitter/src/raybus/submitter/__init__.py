"""Submits one Ray job and follows its log; standard library only.

The package is what the container entry `/submitter` runs (contract rayjob §4). It may import nothing but the standard
library: its image holds no more (ADR 0027).
"""
