"""The development cluster and the development processes."""
