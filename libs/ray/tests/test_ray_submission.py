"""Bodies of the submit call (contract rayjob §5.3, acceptance cases 120-121)."""

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybus.ray.submission import as_float32, encode_submission

NUMBERS = {
    "a tenth": (0.1, "0.1"),
    "more digits than 32 bits hold": (1.10000002384, "1.1"),
    "a whole number": (2.0, "2"),
    "an int": (3, "3"),
    "a third": (1 / 3, "0.33333334"),
    "large": (16777217.0, "16777216"),
    "small": (1e-7, "1e-7"),
    "zero": (0.0, "0"),
}


@pytest.mark.parametrize(("value", "text"), NUMBERS.values(), ids=NUMBERS)
def test_amounts_are_the_shortest_32_bit_numbers(value: float, text: str) -> None:
    assert msgspec.json.encode(as_float32(value)).decode() == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_no_32_bit_number_is_changed(value: float) -> None:
    assert struct.pack("f", as_float32(value)) == struct.pack("f", value) or value == 0


def test_empty_and_zero_are_left_out() -> None:
    request = {
        "entrypoint": "",
        "submission_id": "",
        "runtime_env": {},
        "metadata": {},
        "entrypoint_num_cpus": 0,
        "entrypoint_num_gpus": 0.0,
        "entrypoint_resources": {},
    }
    assert msgspec.json.decode(encode_submission(request)) == {"entrypoint": ""}


def test_what_is_given_is_sent() -> None:
    env = {"working_dir": "s3://a/b.zip", "pip": ["x==1"], "env_vars": {"A": "1"}, "eager_install": False}
    request = {
        "entrypoint": " echo $A && true ",
        "submission_id": "x-1",
        "runtime_env": env,
        "metadata": {"owner": "me"},
        "entrypoint_num_cpus": 1.1,
        "entrypoint_num_gpus": 2.2,
        "entrypoint_resources": {"Custom1": 0.1, "Custom2": 0.2},
    }
    assert msgspec.json.decode(encode_submission(request)) == request
    assert b"1.1," in encode_submission(request)
