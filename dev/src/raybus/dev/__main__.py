"""`python -m raybus.dev up|down|status|kubeconfig`: the commands of `raybus cluster`."""

import argparse
from pathlib import Path

from raybus.dev import commands


def main() -> None:
    """Parse the arguments and run one command."""
    parser = argparse.ArgumentParser(prog="python -m raybus.dev", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    up = subparsers.add_parser("up", help="bring up a cluster")
    up.add_argument("--name", default="dev")
    up.add_argument("--kubeconfig", type=Path)
    up.add_argument("--bare", action="store_true")
    up.add_argument("--nodes", action="append", default=[])
    for name in ("down", "kubeconfig"):
        subparsers.add_parser(name).add_argument("--name", default="dev")
    subparsers.choices["kubeconfig"].add_argument("--user", default="admin")
    subparsers.add_parser("status").add_argument("--name")
    given = vars(parser.parse_args())
    command = given.pop("command")
    if command == "up":
        given["nodes"] = tuple(given["nodes"])
    getattr(commands, f"cluster_{command}")(**given)


if __name__ == "__main__":
    main()
