"""Networks, one file a family: each factory takes a DataSpec and returns a new Keras model."""
