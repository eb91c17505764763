"""How networks, a batch and losses make the loss of a player."""
