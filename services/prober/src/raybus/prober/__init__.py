"""The only process that talks to Ray dashboards."""
