"""The last line and the exit status."""

from raybus.submitter import say
from raybus.submitter.dashboard import Job


def report(job_id: str, job: Job) -> None:
    """Say how the job ended."""
    lines = job.message.strip().splitlines()
    why = lines[0].rstrip(":") if lines else "Ray gives no reason"
    match job.status:
        case "SUCCEEDED":
            say.success(f"Job '{job_id}' succeeded")
        case "STOPPED":
            say.info(f"Job '{job_id}' was stopped")
        case _:
            say.failure(f"Job '{job_id}' failed: {why}")


def own_result(job: Job) -> int:
    """The job's result as an exit status: 0 only if it succeeded, else its command's exit code (128 + n if signal n
    killed it), or 1 if there is none that fits."""
    if job.status == "SUCCEEDED":
        return 0
    code = job.exit_code or 1
    if code < 0:
        code = 128 - code
    return code if code < 256 else 1
