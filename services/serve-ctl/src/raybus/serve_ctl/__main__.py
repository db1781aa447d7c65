"""Run serve-ctl: `python -m raybus.serve_ctl`."""

import sys

from raybus.runtime.common import CommonSettings
from raybus.runtime.controllers import controller_service
from raybus.runtime.service import Service, serve
from raybus.serve_ctl.controller import controller


async def main(service: Service[CommonSettings]) -> None:
    """Decide about RayServices until told to stop."""
    await controller_service(service, controller())


if __name__ == "__main__":
    sys.exit(serve("serve-ctl", CommonSettings, main))
