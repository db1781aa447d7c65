"""Lists and watches Kubernetes and publishes every object to the views that need it."""
