"""A Job as decisions see it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from raybus.api.v1 import ObjectMeta
from raybus.cluster_ctl import labels

_ENDS = ("Complete", "Failed", "FailureTarget")
"""Conditions of which each means that a Job has come to its end."""


class _Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Raw(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()


class Job(Struct, frozen=True, kw_only=True):
    """One Job; `end`: the condition that it ended with, "" while it has not; `owner`: UID of its controller."""

    name: str
    owner: str = ""
    node_type: str = ""
    end: str = ""


_decode_raw: Callable[[bytes], _Raw] = msgspec.json.Decoder(_Raw).decode


def decode_job(raw: bytes) -> Job:
    """Read a Job. Raises msgspec.DecodeError or msgspec.ValidationError."""
    job = _decode_raw(raw)
    meta = job.metadata
    ends = [condition.type for condition in job.status.conditions if condition.status == "True"]
    return Job(
        name=meta.name,
        owner=next((owner.uid for owner in meta.owner_references if owner.controller), ""),
        node_type=meta.labels.get(labels.NODE_TYPE, ""),
        end=next((end for end in ends if end in _ENDS), ""),
    )
