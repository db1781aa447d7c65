"""From a job that Ray knows to its result, with its whole log on stdout, each byte once."""

import time
from dataclasses import dataclass

from raybus.submitter import say
from raybus.submitter.dashboard import Job, Refused, Unreachable, get_job, get_log
from raybus.submitter.options import Options
from raybus.submitter.tail import tail
from raybus.submitter.timing import Timing
from raybus.submitter.transcript import New, Transcript

# Ray ends a complete log connection only after it has twice found nothing new, a second apart. One that ends sooner
# after its last byte has broken inside Ray, which looks the same to us: close code 1000 (ADR 0026).
_SETTLED = 0.5


@dataclass(frozen=True)
class _End:
    """How a log connection ended. trouble: why it was lost, "" if Ray closed it in the normal way; printed: whether it
    brought anything new; abrupt: whether it ended right after its last byte, or without one."""

    trouble: str
    printed: bool
    abrupt: bool


def follow(options: Options, timing: Timing) -> Job:
    """Print the log of a job that Ray knows until it has ended; returns the ended job.

    Raises Unreachable when the dashboard was out of reach for `timing.give_up` seconds, Refused when it is no use to go
    on: the token is not accepted any more, or Ray has forgotten the job.
    """
    return _Follower(options, timing).run()


class _Follower:
    def __init__(self, options: Options, timing: Timing) -> None:
        self._options = options
        self._timing = timing
        self._transcript = Transcript()
        self._reached_at = time.monotonic()

    def run(self) -> Job:
        tries, doubtful, lost_after_end = 0, False, 0
        while True:
            end = self._tail()
            job, trouble = self._look(end.trouble)
            if job is not None and job.ended:
                lost_after_end += bool(trouble)
                if not trouble or lost_after_end > 1:
                    self._complete(verify=bool(trouble) or doubtful or end.abrupt)
                    return job
            doubtful = doubtful or not trouble
            if trouble:
                say.warn(f"lost the job's log at {self._options.address}: {trouble}; trying again")
            tries = 1 if end.printed else tries + 1
            time.sleep(self._timing.wait(tries))

    def _look(self, trouble: str) -> tuple[Job | None, str]:
        """The job, if the dashboard can be reached, and what is wrong, if anything. Raises as `follow`."""
        try:
            return self._known_job(), trouble
        except Unreachable as error:
            self._check_patience(error)
            return None, str(error)

    def _check_patience(self, error: Unreachable) -> None:
        if time.monotonic() - self._reached_at > self._timing.give_up:
            raise Unreachable(f"lost the Ray cluster at {self._options.address}: {error}") from error

    def _tail(self) -> _End:
        """One log connection, to its end. Raises Refused."""
        self._transcript.restart()
        trouble, printed, overdue = "", False, False
        last = None
        try:
            for piece in tail(self._options, self._timing):
                if piece:
                    new = self._transcript.feed(piece)
                    _print(new)
                    printed = printed or bool(new.data)
                    last = self._reached_at = time.monotonic()
                elif overdue:
                    trouble = "the job has ended, but its log has not"
                    break
                else:
                    overdue = self._known_job().ended
        except Unreachable as error:
            trouble = str(error)
        return _End(trouble, printed, abrupt=last is None or time.monotonic() - last < _SETTLED)

    def _known_job(self) -> Job:
        job = get_job(self._options, self._timing.call)
        if job is None:
            where = self._options.address
            raise Refused(f"Ray at {where} does not know job '{self._options.job_id}' any more: its head was replaced")
        self._reached_at = time.monotonic()
        return job

    def _complete(self, *, verify: bool) -> None:
        """The job has ended, and so has the tail. If the tail may have ended early, or cannot be held long enough to
        end (each takes Ray some seconds), print what the log as a whole has beyond it."""
        try:
            if verify:
                log = self._whole_log()
                self._transcript.restart()
                _print(self._transcript.feed(log.encode(errors="surrogatepass")))
            _print(self._transcript.finish())
        except Refused as error:
            say.warn(f"the end of the job's log may be missing, Ray cannot deliver it: {error}")
        if not self._transcript.at_line_start:
            say.write(b"\n")

    def _whole_log(self) -> str:
        """Raises Unreachable as `follow`, Refused if Ray cannot read the log."""
        tries = 0
        while True:
            try:
                return get_log(self._options, self._timing.log)
            except Unreachable as error:
                tries += 1
                self._check_patience(error)
            time.sleep(self._timing.wait(tries))


def _print(new: New) -> None:
    if new.replaced:
        say.warn("the job's log is not the one printed so far; going on with the present one")
    say.write(new.data)
