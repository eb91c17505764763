"""Real examples, addressed by (seed, index of the batch)."""
