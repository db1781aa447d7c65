"""From a cluster that may not be up yet to a job that Ray knows."""

import time

from raybus.submitter import say
from raybus.submitter.address import Address
from raybus.submitter.dashboard import NoSuchName, Unreachable, check_health, get_job, submit
from raybus.submitter.options import Options
from raybus.submitter.timing import Timing


def wait_for_cluster(address: Address, timing: Timing) -> None:
    """Return once the cluster's health check succeeds; without end while the cluster is there, since the RayJob's own
    deadlines end it (contract rayjob §3.2). Says what it waits for: at once, when the reason changes, and now and then.

    Raises Unreachable when the cluster's name has been unknown for `timing.give_up` seconds: the cluster was deleted
    (ADR 0080).
    """
    tries, said, said_at, known_at = 0, "", 0.0, time.monotonic()
    while True:
        try:
            return check_health(address, timing.call)
        except Unreachable as error:
            tries += 1
            now = time.monotonic()
            if not isinstance(error, NoSuchName):
                known_at = now
            elif now - known_at > timing.give_up:
                raise Unreachable(f"the Ray cluster at {address} is gone: {error}") from error
            if str(error) != said or now - said_at >= timing.remind:
                said, said_at = str(error), now
                say.info(f"Waiting for the Ray cluster at {address}: {said}")
        time.sleep(timing.wait(tries))


def ensure_submitted(options: Options, timing: Timing) -> None:
    """Return once Ray knows the job; submit it only if Ray does not know its id.

    A submit call whose answer was lost may have succeeded, so before each repetition Ray is asked again; and Ray itself
    takes an id only once. Raises Unreachable after `timing.submit_for` seconds without success, Refused at once.
    """
    deadline = time.monotonic() + timing.submit_for
    tries = 0
    while True:
        try:
            if get_job(options, timing.call) is None and submit(options, timing.call):
                say.success(f"Job '{options.job_id}' submitted successfully")
            else:
                say.info(f"Job '{options.job_id}' has already been submitted, tailing logs.")
            return
        except Unreachable as error:
            tries += 1
            pause = timing.wait(tries)
            if time.monotonic() + pause > deadline:
                raise
            say.warn(f"cannot submit to {options.address} yet: {error}; trying again")
            time.sleep(pause)
