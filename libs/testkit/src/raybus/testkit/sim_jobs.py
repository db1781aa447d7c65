"""Invariants of RayJobs: names stand in the stored status first, verdicts are true and final, jobs run once."""

from collections.abc import Callable

from raybus.api.decision import Json
from raybus.api.times import parse_time
from raybus.job_ctl.labels import FINALIZER
from raybus.testkit.api_store import Change
from raybus.testkit.fake_ray import Call, FakeRay
from raybus.testkit.sim_ledger import Ledger, by_us, owner

FINAL = ("Complete", "Failed")
SKEW = 3.0
"""Seconds that times cut to a second, and the ways of messages, may differ."""


class JobRules:
    """`skew`: by how many seconds wall clocks have differed at most so far."""

    def __init__(self, ledger: Ledger, ray: FakeRay, skew: Callable[[], float], check_timeout: float) -> None:
        self._ledger, self._store, self._ray, self._skew = ledger, ledger.store, ray, skew
        self._check_timeout = check_timeout
        self._unanswered: dict[str, float] = {}
        """Job id -> when a call about it last found no answer (true seconds)."""
        self._answered: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        """Job id -> when the prober looked at it last."""
        self._taken: dict[tuple[str, str], float] = {}
        """(job id, head's UID) -> when the head took it from the prober."""
        ledger.store.observers.append(self._see)
        ray.observers.append(self._called)

    # ---- writes to the API server

    def _see(self, change: Change) -> None:
        if change.kind == "RayJob" and change.before is not None and change.after is not None:
            self._status(change.before, change.after)
        if change.before is None and change.after is not None and by_us(self._store):
            if change.kind == "RayCluster":
                self._cluster_created(change.after)
            if change.kind == "Job":
                self._submitter_created(change.after)

    def _owner(self, obj: Json) -> Json | None:
        """The RayJob that a new child belongs to, None if it is gone or there is none."""
        reference = owner(obj)
        where = self._store.uids.get(reference["uid"]) if reference and reference["kind"] == "RayJob" else None
        return self._store.get(*where) if where else None

    def _cluster_created(self, cluster: Json) -> None:
        job, name = self._owner(cluster), cluster["metadata"]["name"]
        if job is None:
            return
        status = job.get("status") or {}
        if status.get("rayClusterName") != name:
            said = status.get("rayClusterName")
            self._ledger.violate("names are stored first", f"RayCluster {name} was created, the status says {said}")
        if FINALIZER not in (job["metadata"].get("finalizers") or ()):
            self._ledger.violate("the finalizer is stored first", f"RayCluster {name} was created without it")
        if status.get("jobDeploymentStatus") in FINAL:
            self._ledger.violate("an ended job gets nothing new", f"RayCluster {name} was created")
        uid = job["metadata"]["uid"]
        living = [
            other["metadata"]["name"]
            for other in self._store.objects["RayCluster"].values()
            if (owner(other) or {}).get("uid") == uid and "deletionTimestamp" not in other["metadata"]
        ]
        if len(living) > 1:
            self._ledger.violate("one cluster per attempt", f"RayJob {job['metadata']['name']} has {living}")

    def _submitter_created(self, submitter: Json) -> None:
        job, name = self._owner(submitter), submitter["metadata"]["name"]
        if job is None:
            return
        env = submitter["spec"]["template"]["spec"]["containers"][0]["env"]
        job_id = next(item["value"] for item in env if item["name"] == "RAY_JOB_SUBMISSION_ID")
        status = job.get("status") or {}
        if status.get("jobId") != job_id:
            self._ledger.violate("names are stored first", f"Job {name} submits {job_id}, not {status.get('jobId')}")

    def _status(self, before: Json, after: Json) -> None:
        old, new, name = before.get("status") or {}, after.get("status") or {}, after["metadata"]["name"]
        if old == new:
            return
        was, now = old.get("jobDeploymentStatus", ""), new.get("jobDeploymentStatus", "")
        if was in FINAL and now != was:
            self._ledger.violate("a verdict is final", f"RayJob {name} was {was} and is {now or 'New'}")
        for field in ("failed", "succeeded", "observedGeneration"):
            if (new.get(field) or 0) < (old.get(field) or 0):
                self._ledger.violate("status never goes back", f"{field} of RayJob {name}")
        if old.get("jobId") and new.get("jobId") and old["jobId"] != new["jobId"] and was not in ("Retrying", ""):
            text = f"RayJob {name} was {was} with id {old['jobId']}, now {new['jobId']}"
            self._ledger.violate("one id per attempt", text)
        if now != was and (now in FINAL or now == "Retrying"):
            self._verdict(after, old, new)

    # ---- verdicts

    def _verdict(self, job: Json, old: Json, new: Json) -> None:
        """An attempt has just ended in this status."""
        name, reason, phase = job["metadata"]["name"], new.get("reason", ""), new["jobDeploymentStatus"]
        job_id = new.get("jobId") or old.get("jobId", "")
        truths = self._ray.said.get(job_id, set())
        said, text = new.get("jobStatus", ""), f"RayJob {name}: {phase} {reason} {new.get('jobStatus')}"
        untrue = ""
        if said in ("SUCCEEDED", "FAILED", "STOPPED") and said not in truths and reason != _GRACE:
            untrue = f"Ray never said {said} of {job_id} (it says {sorted(truths)})"
        elif phase == "Complete" and said not in ("SUCCEEDED", "STOPPED"):
            untrue = "complete without an end"
        elif reason == "AppFailed" and said != "FAILED" and not self._lost(job, old, job_id):
            untrue = f"cluster, head and job {job_id} are all still there"
        elif reason == "SubmissionFailed" and not self._submitter_failed(job):
            untrue = "its submitter has not failed"
        elif reason == "DeadlineExceeded":
            limit = job["spec"]["activeDeadlineSeconds"]
            untrue = self._too_early(new["startTime"], limit) or self._not_looked(job, old, limit)
        elif reason == "JobStatusCheckTimeoutExceeded":
            untrue = self._was_heard(job_id)
        if untrue:
            self._ledger.violate("a verdict is true", f"{text}: {untrue}")

    def _lost(self, job: Json, old: Json, job_id: str) -> bool:
        """Whether the head on which the attempt ran is gone, or does not know the job any more."""
        key = (job["metadata"]["namespace"], old.get("rayClusterName", ""))
        cluster = self._store.get("RayCluster", key)
        if cluster is None or "deletionTimestamp" in cluster["metadata"]:
            return True
        pod_name = ((old.get("rayClusterStatus") or {}).get("head") or {}).get("podName", "")
        pod = self._store.get("Pod", (key[0], pod_name)) if pod_name else None
        if pod is None or "deletionTimestamp" in pod["metadata"] or pod["status"]["phase"] in FINAL:
            return True
        return job_id not in self._ray.head(pod["metadata"]["uid"]).jobs

    def _submitter_failed(self, job: Json) -> bool:
        found = self._store.get("Job", (job["metadata"]["namespace"], job["metadata"]["name"]))
        conditions = ((found or {}).get("status") or {}).get("conditions") or ()
        return found is None or any(c["type"] == "Failed" for c in conditions)

    def _too_early(self, start: str, limit: float) -> str:
        passed = self._store.now() - parse_time(start)
        return f"only {passed:.0f} of {limit} s have passed" if passed < limit - SKEW - self._skew() else ""

    def _not_looked(self, job: Json, old: Json, limit: float) -> str:
        """While there is a head to look at, a deadline needs a look that began after it (design §3)."""
        key = (job["metadata"]["namespace"], old.get("rayClusterName", ""))
        heads = [
            pod
            for pod in self._store.all("Pod", key[0])
            if pod["metadata"]["labels"].get("ray.io/cluster") == key[1]
            and pod["metadata"]["labels"].get("ray.io/node-type") == "head"
            and "deletionTimestamp" not in pod["metadata"]
            and pod["status"]["phase"] == "Running"
        ]
        if old.get("jobDeploymentStatus") != "Running" or not heads or self._skew():
            return ""
        deadline = parse_time(old["startTime"]) + limit - (self._store.now() - self._ledger.time())
        looked = self._looked.get(old["jobId"], 0.0)
        return f"the last look was {deadline - looked:.1f} s before the deadline" if looked < deadline else ""

    def _was_heard(self, job_id: str) -> str:
        """A check time-out needs a look without an answer, and none with one, for that long."""
        now = self._ledger.time()
        if job_id not in self._unanswered and not self._answered:
            return ""
        answered = self._answered.get(job_id, float("-inf"))
        if now - answered < self._check_timeout - SKEW - self._skew():
            return f"Ray answered {now - answered:.1f} s ago"
        return ""

    # ---- calls to Ray

    def _called(self, call: Call) -> None:
        parts = call.path.strip("/").split("/")
        if call.method == "POST" and parts == ["api", "jobs"] and call.client.startswith("prober"):
            self._submitted(call)
        elif len(parts) > 2 and call.client.startswith("prober"):
            self._looked[parts[2]] = call.at
            (self._answered if call.answered else self._unanswered)[parts[2]] = call.at

    def _submitted(self, call: Call) -> None:
        """The prober submits: allowed once the stored status shows the head, and once for each head."""
        if not call.head:
            return
        if call.answered and call.job_id not in self._ray.head(call.head).jobs:
            before = self._taken.get((call.job_id, call.head))
            if before is not None and before > self._ledger.wiped_at:
                self._ledger.violate("submit once", f"{call.job_id} was submitted to head {call.head} before")
            self._taken[call.job_id, call.head] = call.at
        pod = self._store.uids.get(call.head)
        names = {
            ((job.get("status") or {}).get("rayClusterStatus") or {}).get("head", {}).get("podName")
            for job in self._store.objects.get("RayJob", {}).values()
        }
        if pod is not None and pod[1][1] not in names:
            self._ledger.violate("submit once it is stored", f"no stored status names head {pod[1][1]}")


_GRACE = "JobDeploymentStatusTransitionGracePeriodExceeded"
