"""The Ray dashboard's REST interface."""
