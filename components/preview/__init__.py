"""Draw a picture of how far a run is, from the same latents and the same real examples at every step."""
