"""Saves and restores a run."""
