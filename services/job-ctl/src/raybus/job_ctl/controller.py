"""RayJobs as the runtime sees them."""

from raybus.job_ctl.decide import decide
from raybus.job_ctl.gather import JobView, gather
from raybus.job_ctl.gauges import GAUGES
from raybus.job_ctl.seen import DECODERS
from raybus.job_ctl.settings import JobKnobs
from raybus.runtime.controller import Controller


def controller(knobs: JobKnobs) -> Controller[JobView, JobKnobs]:
    """The controller `job` with these settings."""
    return Controller(name="job", decoders=DECODERS, gather=gather, decide=decide, knobs=knobs, gauges=GAUGES)
