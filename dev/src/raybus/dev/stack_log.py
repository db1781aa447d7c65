"""One readable, coloured log out of the logs of many processes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")
_LEVELS = {"warning": "yellow", "error": "bold red", "critical": "bold red"}
_PLAIN = ("event", "level", "timestamp", "service", "exception", "replica")


class Follower:
    """Reads what was added to the logs in a folder since the last look."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.offsets: dict[str, int] = {}

    def lines(self) -> Iterator[tuple[str, str]]:
        """(process name, line) of every complete new line; a process whose log is new is found by itself."""
        for path in sorted(self.folder.glob("*.log")):
            with path.open("rb") as log:
                log.seek(self.offsets.get(path.stem, 0))
                data = log.read()
            whole = data[: data.rfind(b"\n") + 1]
            self.offsets[path.stem] = self.offsets.get(path.stem, 0) + len(whole)
            for line in whole.decode(errors="replace").splitlines():
                yield path.stem, line


def render(process: str, line: str) -> Text:
    """One line for the terminal: time, process, what happened, and the fields of a structured log."""
    colour = _COLOURS[sum(process.encode()) % len(_COLOURS)]
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    text = Text()
    if not isinstance(record, dict):
        text.append(f"{time.strftime('%H:%M:%S')} {process:<12} ", style=colour)
        return text.append(line)
    text.append(f"{str(record.get('timestamp', ''))[11:19]} {process:<12} ", style=colour)
    text.append(str(record.get("event", "")), style=_LEVELS.get(str(record.get("level")), ""))
    for key, value in record.items():
        if key not in _PLAIN:
            text.append(f" {key}=", style="dim")
            text.append(value if isinstance(value, str) else json.dumps(value))
    if "exception" in record:
        text.append(f"\n{record['exception']}", style="red")
    return text


def print_new(follower: Follower, console: Console) -> int:
    """Print what is new; returns the number of lines."""
    count = 0
    for process, line in follower.lines():
        console.print(render(process, line), soft_wrap=True)
        count += 1
    return count
