"""Fake bus, fake API server, virtual clock, object builders, simulator."""
