"""Command line and environment -> what to do. Flags and variables are those of KubeRay's light submitter (contract
rayjob §4), plus `--exit-code`."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from raybus.submitter.address import Address, parse_address

# Where the controller mounts the token of a cluster with Kubernetes token authentication (contract rayjob §3.1).
KUBERNETES_TOKEN_FILE = "/var/run/secrets/ray.io/serviceaccount/token"

_DESCRIPTION = """\
Submit one job to a Ray cluster, print its log and end with its result in the last line.

The words after `--` are joined by single spaces and given to Ray as the job's shell command. To pass a shell command as
it stands, give it as one word. A job whose id the cluster already knows is not submitted again, only followed.
"""
_ENVIRONMENT = """\
environment:
  RAY_DASHBOARD_ADDRESS      the dashboard: host:port, http://... or https://... (required)
  RAY_JOB_SUBMISSION_ID      the id of the job (required)
  RAY_AUTH_TOKEN             token of a cluster with token authentication
  RAY_ENABLE_K8S_TOKEN_AUTH  "true": read the token from /var/run/secrets/ray.io/serviceaccount/token

exit status: 0 the job has ended and its log was printed, whatever its result; 1 could not submit or follow; 2 wrong
usage. With --exit-code: 0 only if the job succeeded, else the exit code of its command, or 1.
"""


class UsageError(Exception):
    """The command line or environment is wrong; the text says what. `code` is the exit status (1 or 2)."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Options:
    """address: the dashboard; job_id: the submission id; request: body of the submit call (contract rayjob §5.3), empty
    and zero values left out; token, token_file: at most one is set; own_result: exit with the job's own result."""

    address: Address
    job_id: str
    request: Mapping[str, Any]
    token: str = ""
    token_file: str = ""
    own_result: bool = False


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see /submitter --help)", code=2)


def parse_options(argv: Sequence[str], env: Mapping[str, str]) -> Options:
    """Options from the arguments after the program's name and the environment.

    Raises UsageError; `--help` prints and raises SystemExit(0).
    """
    flags, words = _split(argv)
    args = _parser().parse_intermixed_args(flags)
    entrypoint = " ".join([*args.words, *words])
    if not entrypoint.strip():
        raise UsageError("no entrypoint: give the job's command after `--`", code=2)
    job_id = _required(env, "RAY_JOB_SUBMISSION_ID")
    try:
        address = parse_address(_required(env, "RAY_DASHBOARD_ADDRESS"))
    except ValueError as error:
        raise UsageError(f"RAY_DASHBOARD_ADDRESS: {error}") from error
    request = {
        "entrypoint": entrypoint,
        "submission_id": job_id,
        "runtime_env": _object("--runtime-env-json", args.runtime_env_json),
        "metadata": _strings("--metadata-json", args.metadata_json),
        "entrypoint_num_cpus": args.entrypoint_num_cpus,
        "entrypoint_num_gpus": args.entrypoint_num_gpus,
        "entrypoint_resources": _numbers("--entrypoint-resources", args.entrypoint_resources),
    }
    token = env.get("RAY_AUTH_TOKEN", "").strip()
    from_file = not token and env.get("RAY_ENABLE_K8S_TOKEN_AUTH", "").lower() in ("true", "1")
    return Options(
        address=address,
        job_id=job_id,
        request={key: value for key, value in request.items() if value},
        token=token,
        token_file=KUBERNETES_TOKEN_FILE if from_file else "",
        own_result=args.exit_code,
    )


def _split(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What precedes the first `--`, and the words after it, which are never flags."""
    if "--" not in argv:
        return argv, ()
    at = list(argv).index("--")
    return argv[:at], argv[at + 1 :]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="/submitter",
        usage="/submitter [flags] -- <entrypoint>",
        description=_DESCRIPTION,
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--runtime-env-json", default="", metavar="JSON", help="runtime environment, an object")
    parser.add_argument("--metadata-json", default="", metavar="JSON", help="metadata, an object of strings")
    parser.add_argument("--entrypoint-resources", default="", metavar="JSON", help="custom resources, name to number")
    parser.add_argument("--entrypoint-num-cpus", default=0, type=_quantity, metavar="N", help="CPUs for the entrypoint")
    parser.add_argument("--entrypoint-num-gpus", default=0, type=_quantity, metavar="N", help="GPUs for the entrypoint")
    parser.add_argument("--exit-code", action="store_true", help="exit with the job's own result")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    return parser


def _quantity(text: str) -> float | int:
    """A finite number >= 0; whole numbers become int, so that 1 is sent as 1 (as KubeRay does)."""
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return int(value) if value.is_integer() else value


def _required(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "").strip()
    if not value:
        raise UsageError(f"environment variable {name} is not set")
    return value


def _object(flag: str, text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{flag} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{flag} must be a JSON object, not {type(value).__name__}")
    return value


def _strings(flag: str, text: str) -> dict[str, str]:
    value = _object(flag, text)
    for key, item in value.items():
        if not isinstance(item, str):
            raise UsageError(f"{flag}: the value of {key!r} must be a string")
    return value


def _numbers(flag: str, text: str) -> dict[str, float]:
    value = _object(flag, text)
    for key, item in value.items():
        if isinstance(item, bool) or not isinstance(item, int | float):
            raise UsageError(f"{flag}: the value of {key!r} must be a number")
    return value
