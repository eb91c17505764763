"""What a maintainer or a cluster user runs by hand: python -m tools.NAME."""
