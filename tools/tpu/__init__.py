"""The parts of `tools.tpu_check`."""
