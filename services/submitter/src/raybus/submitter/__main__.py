"""`/submitter`: see --help."""

import os
import signal
import sys
from types import FrameType

from raybus.submitter import say
from raybus.submitter.dashboard import Refused, Unreachable
from raybus.submitter.follow import follow
from raybus.submitter.options import UsageError, parse_options
from raybus.submitter.result import own_result, report
from raybus.submitter.start import ensure_submitted, wait_for_cluster
from raybus.submitter.timing import Timing


def stop(signum: int, _frame: FrameType | None) -> None:
    """Leave at once: nothing is buffered, and the Ray job goes on without us. (As process 1 of a container a signal
    without a handler would do nothing at all.)"""
    say.error(f"stopped by {signal.Signals(signum).name}; the Ray job is not")
    os._exit(128 + signum)


def main() -> int:
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    timing = Timing()
    try:
        options = parse_options(sys.argv[1:], os.environ)
        wait_for_cluster(options.address, timing)
        ensure_submitted(options, timing)
        say.info("Tailing logs until the job finishes:")
        job = follow(options, timing)
    except UsageError as error:
        say.error(str(error))
        return error.code
    except (Refused, Unreachable) as error:
        say.error(str(error))
        return 1
    report(options.job_id, job)
    return own_result(job) if options.own_result else 0


if __name__ == "__main__":
    sys.exit(main())
