"""The `raybus` command as a user calls it."""

import os
import subprocess
import sys
from collections.abc import Callable

from raybus.dev.stack import READER, Stack


def raybus_command(stack: Stack) -> Callable[..., str]:
    """The command against the bus of `stack`; a call returns what it prints."""

    def run(*arguments: str) -> str:
        environment = os.environ | {
            "RAYBUS_NATS_URL": stack.nats_url,
            "RAYBUS_NATS_PASSWORD": stack.passwords[READER],
            "COLUMNS": "300",
        }
        command = [sys.executable, "-m", "raybus.cli", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    return run
