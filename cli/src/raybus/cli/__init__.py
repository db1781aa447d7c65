"""The raybus command."""
