"""Follows the quality of a run."""
