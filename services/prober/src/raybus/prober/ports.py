"""What the prober needs of Ray: one call each, whose answer is a value; nothing is raised for a head that is dead."""

from typing import Literal, Protocol

from msgspec import Struct

from raybus.api.decision import Head, Json
from raybus.api.messages import Epoch, JobFact

Outcome = Literal["ok", "missing", "refused", "unreachable"]


class Answer(Struct, frozen=True, kw_only=True):
    """What came of a call; the fields as in `messages.Fact`. `final`: asking the same again would bring the same."""

    outcome: Outcome
    job: JobFact | None = None
    text: str = ""
    final: bool = False


class Dashboards(Protocol):
    """Calls to the dashboards of heads in a namespace, each bounded in time."""

    async def job(self, namespace: str, head: Head, job_id: str) -> Answer:
        """What Ray knows of a job."""

    async def submit(self, namespace: str, head: Head, job_id: str, request: Json) -> Answer:
        """Submit a job; one that Ray knows already counts as submitted."""

    async def stop(self, namespace: str, head: Head, job_id: str) -> Answer:
        """Stop a job; one that has ended counts as stopped, one that Ray does not know is `missing`."""


class Lease(Protocol):
    """What the fence asks of the prober's partitions (`raybus.bus.partitions`)."""

    def owns(self, partition: int) -> bool:
        """Whether the lease of this partition is ours."""

    def fresh(self) -> bool:
        """Whether our last answered heart-beat is recent by the monotonic clock."""


class Epochs(Protocol):
    """The leases of the controllers, as followed on the bus (`raybus.bus.epochs`)."""

    async def judge(self, controller: str, partition: int, epoch: Epoch) -> Literal["current", "old", "unknown"]:
        """Whether an ask of this epoch comes from the partition's owner. Raises BusError."""
