"""An address of this machine that may stand in Endpoints: 127.x may not, so one more on the loopback device."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loopback_address(address: str) -> Iterator[str]:
    """`address` exists while the block runs; one that was there before stays. Raises CalledProcessError without the
    right to add it."""
    shown = subprocess.run(["ip", "addr", "show", "lo"], capture_output=True, text=True, check=True).stdout
    made = f" {address}/" not in shown
    if made:
        subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    try:
        yield address
    finally:
        if made:
            subprocess.run(["ip", "addr", "del", f"{address}/32", "dev", "lo"], check=True)
