"""Scores what was trained: features of images, metrics on them, and a certificate for every number."""
