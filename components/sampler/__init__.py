"""Draws images from trained networks."""
