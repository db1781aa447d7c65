"""Run one short command of the system and say clearly what failed."""

import subprocess

from raybus.dev.errors import DevError


def run(*argv: str) -> str:
    """Standard output of the command. Raises `DevError` with its last words when it fails or is not there."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise DevError(f"The program {argv[0]} is missing: install it and try again.") from None
    if done.returncode != 0:
        raise DevError(f"`{' '.join(argv)}` failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def succeeds(*argv: str) -> bool:
    """Whether the command ends with status 0."""
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0
