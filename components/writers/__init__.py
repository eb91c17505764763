"""Keep the curves and pictures of a run."""
