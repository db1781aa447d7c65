"""The body of the submit call. Pure."""

import math
import struct
from collections.abc import Mapping
from typing import Any

import msgspec

_FLOAT32_MAX = 3.4e38
_NUMBERS = ("entrypoint_num_cpus", "entrypoint_num_gpus")


def encode_submission(request: Mapping[str, Any]) -> bytes:
    """JSON of a submit body: keys are `entrypoint`, `submission_id`, `runtime_env`, `metadata`, `entrypoint_num_cpus`,
    `entrypoint_num_gpus`, `entrypoint_resources`. All but the entrypoint are left out when empty or zero, and amounts
    are 32-bit numbers (contract rayjob §5.3)."""
    body = {key: value for key, value in request.items() if value or key == "entrypoint"}
    amounts: dict[str, Any] = {key: as_float32(body[key]) for key in _NUMBERS if key in body}
    resources = body.get("entrypoint_resources")
    if resources:
        amounts["entrypoint_resources"] = {name: as_float32(amount) for name, amount in resources.items()}
    return msgspec.json.encode({**body, **amounts})


def as_float32(value: float) -> float | int:
    """The number that KubeRay sends for `value`: rounded to 32 bits, with the fewest digits that mean the same 32-bit
    number; whole numbers without a fraction (contract rayjob §5.3: 1.1, not 1.10000002)."""
    if not math.isfinite(value) or abs(value) > _FLOAT32_MAX:
        return value
    bits = struct.pack("f", value)
    (rounded,) = struct.unpack("f", bits)
    for digits in range(1, 10):
        short = float(f"{rounded:.{digits}g}")
        if abs(short) <= _FLOAT32_MAX and struct.pack("f", short) == bits:
            return int(short) if short.is_integer() else short
    return value
