"""`/submitter`: see --help."""

import os
import sys

from raybus.submitter import say
from raybus.submitter.dashboard import Refused, Unreachable
from raybus.submitter.follow import follow
from raybus.submitter.options import UsageError, parse_options
from raybus.submitter.result import own_result, report
from raybus.submitter.start import ensure_submitted, wait_for_cluster
from raybus.submitter.stopping import leave_on_signals
from raybus.submitter.timing import Timing


def main() -> int:
    leave_on_signals()
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
