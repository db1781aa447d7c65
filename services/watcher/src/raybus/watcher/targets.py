"""What is watched: every selector of every watched kind, in all or in the listed namespaces."""

from collections.abc import Container, Sequence

from raybus.api.kinds import KINDS, Kind
from raybus.kube.watch import Target


def targets(namespaces: Sequence[str], gates: Container[str], kinds: Sequence[Kind] = KINDS) -> tuple[Target, ...]:
    """One watch per kind, selector and namespace; no `namespaces` = one for all of them (contract platform §1);
    kinds of a feature whose gate is not among the open `gates` are left out."""
    return tuple(
        Target(kind, selector, namespace)
        for kind in kinds
        if not kind.gate or kind.gate in gates
        for selector in kind.selectors
        for namespace in (namespaces or ("",))
    )
