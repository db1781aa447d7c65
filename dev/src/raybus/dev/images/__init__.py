"""Container images made on this machine: no registry, no image builder (design §7, ADR 0013)."""
