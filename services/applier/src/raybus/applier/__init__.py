"""The only writer to Kubernetes: carries out decisions."""
