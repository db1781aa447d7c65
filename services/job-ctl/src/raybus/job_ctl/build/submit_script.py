"""KubeRay's way to submit in K8sJobMode: a shell script with Ray's command line (contract rayjob §3.2)."""

from raybus.api.v1 import RayJobSpec
from raybus.job_ctl import runtime_env

_PROBE = "import sys, urllib.request as u; sys.exit(0 if b'success' in u.urlopen('{url}', timeout=10).read() else 1)"


def submit_script(spec: RayJobSpec, dashboard: str, job_id: str) -> str:
    """Wait for the dashboard, submit unless the id is known there, follow the log.

    A submitter that is started again finds the id known and only follows. `dashboard`: host and port, with or without
    `http://`. The entrypoint is trimmed and otherwise put in as it stands, so the submitter's shell reads it (contract
    rayjob §10, 28).
    """
    address = dashboard if dashboard.startswith("http://") else f"http://{dashboard}"
    return " ".join(
        [
            *_wait(address),
            f"if ! ray job status --address {address} {job_id} >/dev/null 2>&1 ; then",
            f"ray job submit --address {address} --no-wait",
            *_options(spec, job_id),
            f"-- {spec.entrypoint.strip()} ;",
            f"fi ; ray job logs --address {address} --follow {job_id}",
        ]
    )


def _wait(address: str) -> list[str]:
    probe = _PROBE.format(url=f"{address}/api/gcs_healthz")
    return [
        f'until python -c "{probe}" >/dev/null 2>&1 ;',
        f'do echo "The Ray dashboard at {address} is not healthy yet, waiting" ; sleep 2 ; done ;',
    ]


def _options(spec: RayJobSpec, job_id: str) -> list[str]:
    env = runtime_env.parse(spec.runtime_env_yaml)
    options = [
        ("--runtime-env-json", quote(runtime_env.compact_json(env)) if spec.runtime_env_yaml.strip() else ""),
        ("--metadata-json", quote(runtime_env.compact_json(spec.metadata)) if spec.metadata else ""),
        ("--submission-id", job_id),
        ("--entrypoint-num-cpus", f"{spec.entrypoint_num_cpus:.6f}" if spec.entrypoint_num_cpus > 0 else ""),
        ("--entrypoint-num-gpus", f"{spec.entrypoint_num_gpus:.6f}" if spec.entrypoint_num_gpus > 0 else ""),
        ("--entrypoint-resources", quote(spec.entrypoint_resources) if spec.entrypoint_resources else ""),
    ]
    return [f"{name} {value}" for name, value in options if value]


_SHORT = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", '"': '"', "\\": "\\"}


def quote(text: str) -> str:
    """`text` in double quotes, escaped as Go writes a string: quotes, backslashes and what cannot be printed.

    `$` and backticks stay, so the shell expands them, as with KubeRay (contract rayjob §3.2).
    """
    return '"' + "".join(_escape(letter) for letter in text) + '"'


def _escape(letter: str) -> str:
    if letter in _SHORT:
        return "\\" + _SHORT[letter]
    if letter.isprintable():
        return letter
    number = ord(letter)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
