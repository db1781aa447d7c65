"""`raybus timeline`: what happened to an object, and why (design §3, stream TIMELINE)."""

import time

from rich.text import Text

from raybus.api.messages import TimelineEntry


def render(entry: TimelineEntry) -> Text:
    """One entry for the terminal: when, who, the phase step, what was done, and the reasons."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(entry.at)) + f".{int(entry.at * 1000) % 1000:03d}Z"
    text = Text(f"{clock}  ", style="dim")
    text.append(f"{entry.service:<11}", style="cyan")
    if entry.phase:
        text.append(f"  {entry.phase}", style="bold")
    if entry.did:
        text.append("  " + "; ".join(entry.did))
    for why in entry.because:
        text.append(f"\n    {why.reason}", style="yellow")
        text.append(f": {why.text}")
    return text
