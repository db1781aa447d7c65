"""Batch schedulers: what each wants of pods and of objects beside them (contract objects §6)."""
