"""How a class enters a generator."""

from typing import Literal

import keras
from keras import layers

from components.interfaces import DataSpec
from components.model_zoo.conditioning import ClassEmbedding, OneHot, way_of_class
from components.model_zoo.normalisation import Normalisation, Normaliser, normaliser, require_batch_norm

GeneratorConditioning = Literal["one_hot", "embedding", "batch_norm", "none"]


def enter_class(
    latents: keras.KerasTensor,
    labels: keras.KerasTensor,
    conditioning: GeneratorConditioning | None,
    *,
    default: GeneratorConditioning,
    normalisation: Normalisation,
    momentum: float,
    spec: DataSpec,
    network: str,
) -> tuple[keras.KerasTensor, Normaliser]:
    """Return what the generator starts from, float[B, Z'], and what normalises its maps.

    | conditioning | the class |
    |---|---|
    | "one_hot" | is a one-hot vector beside the latents (Mirza and Osindero, 2014, arXiv:1411.1784, section 3.2) |
    | "embedding" | is a learnt vector beside them, as wide as they are and normal at first (Karras et al., 2020, |
    |             | arXiv:2006.06676, their class-conditional CIFAR-10; neither half is normalised here) |
    | "batch_norm" | sets gain and bias of every batch normalisation (Miyato and Koyama, 2018, arXiv:1802.05637) |
    | "none" | is not looked at |

    Args:
      latents: float32[B, Z].
      labels: int32[B].
      conditioning: None: `default` where the data have labels, else "none".
      default: the family's own.
      normalisation: of the generator's maps.
      momentum: of batch normalisation.
      spec: the data.
      network: its name, for refusals.

    Raises:
      UserError: a way for a class that the data do not have, or through a batch normalisation that is not there.
    """
    way = way_of_class(conditioning, default, spec, network)
    if way == "batch_norm":
        require_batch_norm(normalisation, network)
        norm = normaliser(normalisation, momentum=momentum, labels=labels, num_classes=spec.num_classes)
        return latents, norm
    start = latents
    if way == "one_hot":
        start = layers.Concatenate()([latents, OneHot(spec.num_classes)(labels)])
    elif way == "embedding":
        normal = keras.initializers.RandomNormal(stddev=1.0)
        embedded = ClassEmbedding(spec.num_classes, latents.shape[-1], embeddings_initializer=normal)(labels)
        start = layers.Concatenate()([latents, embedded])
    return start, normaliser(normalisation, momentum=momentum)
