"""Pure functions from logits to losses, one number per example."""
