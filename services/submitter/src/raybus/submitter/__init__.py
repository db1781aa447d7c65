"""Submits one Ray job and follows its log; standard library only."""
