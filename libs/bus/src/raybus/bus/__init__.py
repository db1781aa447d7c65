"""Streams, ordered views, leases and partitions on NATS JetStream."""
