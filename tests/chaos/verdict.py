"""The figures of a run."""

from collections import Counter
from collections.abc import Callable, Sequence

import audit
import judge
from history import Cluster, Job, Pod
from leases import p99, waits
from stage import Run

SHOWN = 20


def report(run: Run, late: Sequence[str], say: Callable[[str], None]) -> int:
    """Say what was found, the figures last; returns the exit status."""
    history = run.history.ordered()
    attempts = {seen.name: seen.held.attempts for seen in history if isinstance(seen.held, Job)}
    duplicates = [*judge.doubled_pods(history), *judge.doubled_children(history)]
    duplicates += judge.doubled_submissions(run.ray.runs, attempts)
    wrong = list(judge.wrong_verdicts(history, run.ray.runs))
    clusters = {seen.name: seen.held.cluster for seen in history if isinstance(seen.held, Pod)}
    writes = list(audit.read(run.cluster.audit_log, run.namespace, clusters))
    stale = audit.stale_writes(writes, run.hands.thaws, run.leases.kept, run.namespace, history)
    taken = waits(run.leases.kept, run.hands.outages, run.hands.disturbed)
    _show(run, say, writes, len(taken))
    for title, found in (("duplicate", duplicates), ("lost", late), ("wrong", wrong), ("stale", stale.applied)):
        for text in found[:SHOWN]:
            say(f"{title}: {text}")
    for name, partition, seconds in sorted(taken, key=lambda wait: -wait[2])[:5]:
        say(f"slowest take-overs: partition {partition} of {name} after {seconds:.2f} s")
    say(f"creations on their way at a freeze, gone again in time: {len(stale.late)}")
    say(
        f"chaos: faults={len(run.hands.struck)} duplicates={len(duplicates)} lost={len(late)} wrong={len(wrong)} "
        f"stale_writes_applied={len(stale.applied)} takeover_p99_s={p99([wait[2] for wait in taken]):.2f}"
    )
    return 1 if duplicates or late or wrong or stale.applied else 0


def _show(run: Run, say: Callable[[str], None], writes: Sequence[judge.Write], taken: int) -> None:
    kinds = Counter(struck.kind for struck in run.hands.struck)
    say("faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    say("users: " + ", ".join(f"{deed} {count}" for deed, count in sorted(run.workload.done.items())))
    held = [seen.held for seen in run.history.seen]
    count = {kind.__name__: len({h.uid for h in held if isinstance(h, kind)}) for kind in (Cluster, Job, Pod)}
    say(f"recorded: {len(held)} revisions of {count}; Ray took {len(run.ray.runs)} submissions, knew {run.ray.known}")
    codes = Counter(write.code // 100 for write in writes)
    say(f"audited: {len(writes)} writes, applied {codes[2]}; refused {codes[4]}; take-overs measured: {taken}")
