"""Run job-ctl: `python -m raybus.job_ctl`."""

import sys

from raybus.job_ctl.controller import controller
from raybus.job_ctl.service_settings import JobSettings, knobs
from raybus.runtime.controllers import controller_service
from raybus.runtime.service import Service, serve


async def main(service: Service[JobSettings]) -> None:
    """Decide about RayJobs until told to stop. Raises SettingsError for gates that cannot be honoured."""
    await controller_service(service, controller(knobs(service.settings)))


if __name__ == "__main__":
    sys.exit(serve("job-ctl", JobSettings, main))
