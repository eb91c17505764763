"""The parts: one folder an area; see interfaces.py."""
