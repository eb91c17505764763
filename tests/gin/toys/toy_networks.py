"""Makers of networks."""

from typing import Annotated

import keras
from annotated_types import Gt

from components.interfaces import DataSpec


def generator(spec: DataSpec, *, latent_dim: Annotated[int, Gt(0)], width: int = 8) -> keras.Model:
    latents = keras.Input([latent_dim])
    return keras.Model(latents, keras.layers.Dense(width)(latents))


def discriminator(spec: DataSpec, *, width: int = 8, slope: float = 0.2) -> keras.Model:
    images = keras.Input(spec.image_shape)
    return keras.Model(images, keras.layers.Dense(width)(images))
