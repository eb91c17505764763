"""The program: a gin file names the parts, `build` makes them, one loop runs them."""
