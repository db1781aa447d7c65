"""The loop around gather and decide; start-up, settings, health, shutdown."""
