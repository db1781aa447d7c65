"""Command line and environment (contract rayjob §4)."""

from typing import Any

import pytest

from raybus.submitter.address import Address, parse_address
from raybus.submitter.options import KUBERNETES_TOKEN_FILE, UsageError, parse_options

ENV = {"RAY_DASHBOARD_ADDRESS": "head:8265", "RAY_JOB_SUBMISSION_ID": "job-1"}


def test_all_flags_become_the_request() -> None:
    options = parse_options(
        [
            "--runtime-env-json",
            '{"pip": ["a"], "env_vars": {"A": "b"}}',
            '--metadata-json={"owner": "me"}',
            "--entrypoint-resources",
            '{"Custom": 0.5}',
            "--entrypoint-num-cpus",
            "1",
            "--entrypoint-num-gpus=0.5",
            "--",
            "python",
            "x.py",
            "--entrypoint-num-cpus",
            "--",
            "9",
        ],
        ENV,
    )
    assert options.request == {
        "entrypoint": "python x.py --entrypoint-num-cpus -- 9",
        "submission_id": "job-1",
        "runtime_env": {"pip": ["a"], "env_vars": {"A": "b"}},
        "metadata": {"owner": "me"},
        "entrypoint_resources": {"Custom": 0.5},
        "entrypoint_num_cpus": 1,
        "entrypoint_num_gpus": 0.5,
    }
    assert isinstance(options.request["entrypoint_num_cpus"], int)
    assert (options.address, options.job_id) == (Address(False, "head", 8265), "job-1")
    assert (options.token, options.token_file, options.own_result) == ("", "", False)


def test_empty_and_zero_are_left_out_and_a_word_stays_as_it_is() -> None:
    argv = ["--runtime-env-json", "", "--metadata-json", "{}", "--entrypoint-num-cpus", "0", "--", "a  'b' && $C\n"]
    assert parse_options(argv, ENV).request == {"entrypoint": "a  'b' && $C\n", "submission_id": "job-1"}


def test_flags_may_stand_between_words_without_dashes() -> None:
    options = parse_options(["python", "--exit-code", "x.py", "--entrypoint-num-cpus", "2"], ENV)
    assert options.request["entrypoint"] == "python x.py"
    assert options.request["entrypoint_num_cpus"] == 2
    assert options.own_result


TOKENS: dict[str, tuple[dict[str, str], tuple[str, str]]] = {
    "none": ({}, ("", "")),
    "a token": ({"RAY_AUTH_TOKEN": " abc\n"}, ("abc", "")),
    "the service account's": ({"RAY_ENABLE_K8S_TOKEN_AUTH": "true"}, ("", KUBERNETES_TOKEN_FILE)),
    "not the service account's": ({"RAY_ENABLE_K8S_TOKEN_AUTH": "false"}, ("", "")),
    "a token goes first": ({"RAY_AUTH_TOKEN": "abc", "RAY_ENABLE_K8S_TOKEN_AUTH": "true"}, ("abc", "")),
}


@pytest.mark.parametrize(("env", "expected"), TOKENS.values(), ids=TOKENS)
def test_tokens(env: dict[str, str], expected: tuple[str, str]) -> None:
    options = parse_options(["--", "true"], ENV | env)
    assert (options.token, options.token_file) == expected


WRONG: dict[str, tuple[list[str], dict[str, str], str, int]] = {
    "no address": (["--", "x"], {"RAY_DASHBOARD_ADDRESS": ""}, "RAY_DASHBOARD_ADDRESS is not set", 1),
    "no id": (["--", "x"], {"RAY_JOB_SUBMISSION_ID": " "}, "RAY_JOB_SUBMISSION_ID is not set", 1),
    "address": (["--", "x"], {"RAY_DASHBOARD_ADDRESS": "ftp://x"}, "RAY_DASHBOARD_ADDRESS: 'ftp://x' is neither", 1),
    "no JSON": (["--runtime-env-json", "{", "--", "x"], {}, "--runtime-env-json is not JSON", 1),
    "no object": (["--metadata-json", "[1]", "--", "x"], {}, "--metadata-json must be a JSON object, not list", 1),
    "no string": (["--metadata-json", '{"a": 1}', "--", "x"], {}, "the value of 'a' must be a string", 1),
    "no number": (["--entrypoint-resources", '{"a": "1"}', "--", "x"], {}, "the value of 'a' must be a number", 1),
    "truth": (["--entrypoint-resources", '{"a": true}', "--", "x"], {}, "the value of 'a' must be a number", 1),
    "negative": (["--entrypoint-num-cpus=-1", "--", "x"], {}, "--entrypoint-num-cpus: invalid", 2),
    "infinite": (["--entrypoint-num-gpus", "inf", "--", "x"], {}, "--entrypoint-num-gpus: invalid", 2),
    "unknown flag": (["--no-wait", "--", "x"], {}, "unrecognized arguments: --no-wait (see /submitter --help)", 2),
    "shortened flag": (["--metadata", "{}", "--", "x"], {}, "unrecognized arguments: --metadata", 2),
    "no entrypoint": ([], {}, "no entrypoint", 2),
    "blank entrypoint": (["--", " "], {}, "no entrypoint", 2),
}


@pytest.mark.parametrize(("argv", "env", "text", "code"), WRONG.values(), ids=WRONG)
def test_wrong_usage(argv: list[str], env: dict[str, str], text: str, code: int) -> None:
    with pytest.raises(UsageError) as caught:
        parse_options(argv, ENV | env)
    assert text in str(caught.value)
    assert caught.value.code == code


def test_help_ends_with_success(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(["--help"], {})
    assert caught.value.code == 0
    assert "--runtime-env-json" in capsys.readouterr().out


ADDRESSES: dict[str, tuple[Any, ...]] = {
    "head:8265": (False, "head", 8265, ""),
    "10.0.0.1:8265": (False, "10.0.0.1", 8265, ""),
    "[fd00::1]:8265": (False, "fd00::1", 8265, ""),
    "http://head:8265/": (False, "head", 8265, ""),
    "https://ray.example/a/b/": (True, "ray.example", 443, "/a/b"),
    "http://head": (False, "head", 80, ""),
}


@pytest.mark.parametrize("text", ADDRESSES)
def test_addresses(text: str) -> None:
    address = parse_address(text)
    assert address == Address(*ADDRESSES[text])
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["", "http://", "head:x", "head:99999", "http://:8265"])
def test_wrong_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        parse_address(text)
