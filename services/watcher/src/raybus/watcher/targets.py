"""What is watched: every selector of every watched kind, in all or in the listed namespaces."""

from collections.abc import Sequence

from raybus.api.kinds import KINDS, Kind
from raybus.kube.watch import Target


def targets(namespaces: Sequence[str], kinds: Sequence[Kind] = KINDS) -> tuple[Target, ...]:
    """One watch per kind, selector and namespace; no `namespaces` = one for all of them (contract platform §1)."""
    return tuple(
        Target(kind, selector, namespace)
        for kind in kinds
        for selector in kind.selectors
        for namespace in (namespaces or ("",))
    )
