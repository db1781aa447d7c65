"""What a caller may ask of a development cluster."""

from dataclasses import dataclass
from pathlib import Path

from raybus.dev.errors import DevError


@dataclass(frozen=True)
class ClusterOptions:
    """A cluster by name; asking again with other values changes the one that runs.

    `bare`: API server, garbage collection, namespaces and service accounts only, with the foreign CRDs of the
    recordings. `kwok_nodes`: number of simulated nodes. `real_node`: a containerd node with kubelet; by default exactly
    when neither `bare` nor simulated nodes are asked for. `kubeconfig`: use that existing cluster, not one of our own.
    `audited`: what Raybus' users write stands in `Cluster.audit_log`, and etcd holds JSON, so that a judge can read
    each revision without the API server.
    """

    name: str = "dev"
    bare: bool = False
    kwok_nodes: int = 0
    real_node: bool | None = None
    kubeconfig: Path | None = None
    audited: bool = False

    def wants_real_node(self) -> bool:
        """Whether a real node is asked for."""
        return self.real_node if self.real_node is not None else not self.bare and self.kwok_nodes == 0

    def check(self) -> None:
        """Raise `DevError` for values that contradict each other."""
        if self.bare and (self.kwok_nodes or self.real_node):
            raise DevError("A bare cluster has no nodes: leave out either --bare or --nodes.")
        if self.kubeconfig is not None and (self.bare or self.kwok_nodes or self.real_node):
            raise DevError("Nodes of the cluster behind --kubeconfig are its own affair: leave out --bare and --nodes.")
        if self.kubeconfig is not None and self.audited:
            raise DevError("The API server behind --kubeconfig is not ours to configure: it cannot be audited.")
        if self.kwok_nodes < 0:
            raise DevError(f"{self.kwok_nodes} simulated nodes are not possible: use 0 or more.")


def parse_nodes(values: tuple[str, ...]) -> tuple[int, bool | None]:
    """Simulated nodes and wish for a real one, out of `--nodes` values such as `kwok:20` and `real`.

    Raises `DevError` for anything else.
    """
    count, real = 0, None
    for value in values:
        kind, _, number = value.partition(":")
        if value == "real":
            real = True
        elif kind == "kwok" and number.isdecimal():
            count = int(number)
        else:
            raise DevError(f'--nodes {value} is not understood: use "real" or "kwok:20" (20 simulated nodes).')
    return count, real
