"""Random changes of images that gradients pass through, for what a discriminator sees."""
