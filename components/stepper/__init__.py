"""The hardware, the training step and its randomness."""
