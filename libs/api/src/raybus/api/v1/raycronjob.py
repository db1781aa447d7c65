"""RayCronJob: RayJobs on a schedule (contract rayjob §8)."""

from typing import Annotated

from msgspec import Struct, field

from raybus.api.v1._doc import Time, doc
from raybus.api.v1.meta import ObjectMeta
from raybus.api.v1.raycluster import API_VERSION_TEXT, METADATA_TEXT
from raybus.api.v1.rayjob import RayJobSpec


class RayCronJobSpec(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The wanted schedule."""

    schedule: Annotated[
        str,
        doc(
            "When to start a job, as five cron fields (minute, hour, day of month, month, day of week) or `@hourly`"
            " and the like.",
            required=True,
        ),
    ] = ""
    time_zone: Annotated[
        str | None,
        doc(
            "IANA name of the schedule's time zone, such as `Europe/Berlin`. Unset: that of the control plane.",
            minLength=1,
        ),
    ] = None
    suspend: Annotated[bool | None, doc("True: no further jobs are started; those that run go on.")] = None
    job_template: Annotated[RayJobSpec, doc("Spec of each RayJob that is started.", required=True)] = RayJobSpec()


class RayCronJobStatus(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """The observed schedule."""

    last_schedule_time: Annotated[
        Time | None,
        doc("The last time of the schedule that was dealt with (not when the job was made). RFC 3339, UTC."),
    ] = None


class RayCronJob(Struct, kw_only=True, omit_defaults=True, frozen=True, rename="camel"):
    """A schedule that starts a RayJob at each of its times."""

    api_version: Annotated[str, doc(API_VERSION_TEXT)] = field(default_factory=lambda: "ray.io/v1")
    kind: Annotated[str, doc("`RayCronJob`.")] = field(default_factory=lambda: "RayCronJob")
    metadata: Annotated[ObjectMeta, doc(METADATA_TEXT)] = field(default_factory=ObjectMeta)
    spec: Annotated[RayCronJobSpec, doc("The wanted schedule.")] = field(default_factory=RayCronJobSpec)
    status: Annotated[RayCronJobStatus, doc("The observed schedule, written by the control plane.")] = field(
        default_factory=RayCronJobStatus
    )
