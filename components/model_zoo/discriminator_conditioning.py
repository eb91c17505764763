"""How a class enters a discriminator, at its images or at its logits."""

from typing import Literal

import keras
from keras import layers

from components.interfaces import DataSpec, UserError
from components.model_zoo.conditioning import LabelPlanes, LabelStripes, way_of_class
from components.model_zoo.spectral_norm import constrained

DiscriminatorConditioning = Literal["stripes", "planes", "embedding", "projection", "auxiliary_classifier", "none"]


class ClassOfImages:
    """The way of a class through one discriminator.

    | conditioning | the class |
    |---|---|
    | "stripes" | is an image of stripes beside the picture: `LabelStripes` |
    | "planes" | is one of num_classes planes beside the picture: `LabelPlanes` |
    | "embedding" | is a learnt plane beside the picture (Denton et al., 2015, arXiv:1506.05751) |
    | "projection" | multiplies the features: `projection_logits` |
    | "auxiliary_classifier" | is not looked at but named: "class_logits" (Odena et al., 2016, arXiv:1610.09585) |
    | "none" | is not looked at |

    Args:
      conditioning: None: `default` where the data have labels, else "none".
      default: the family's own.
      spec: the data.
      network: its name, for refusals.
      spectral_norm: whether the layers of the logits are spectrally normalised.
      label_channels: channels of the stripes; None: `default_label_channels`.
      default_label_channels: the family's own.

    Raises:
      UserError: a way for a class that the data do not have, or channels of stripes that are not there.
    """

    def __init__(
        self,
        conditioning: DiscriminatorConditioning | None,
        *,
        default: DiscriminatorConditioning,
        spec: DataSpec,
        network: str,
        spectral_norm: bool = False,
        label_channels: int | None = None,
        default_label_channels: int = 1,
    ) -> None:
        """Decide the way."""
        self.way = way_of_class(conditioning, default, spec, network)
        if label_channels is not None and self.way != "stripes":
            raise UserError(
                f"`{network}.label_channels` is of stripes. Received {label_channels} with the conditioning "
                f"{self.way!r}. Leave it out, or bind `conditioning = 'stripes'`."
            )
        self._spec, self._spectral_norm = spec, spectral_norm
        self._label_channels = label_channels or default_label_channels

    def beside(self, images: keras.KerasTensor, labels: keras.KerasTensor) -> keras.KerasTensor:
        """Return images float32[B, H, W, C] with the channels of the class, if it enters here."""
        height, width, _ = self._spec.image_shape
        classes = self._spec.num_classes
        if self.way == "stripes":
            shown = LabelStripes(height, width, classes, self._label_channels)(labels)
        elif self.way == "planes":
            shown = LabelPlanes(height, width, classes)(labels)
        elif self.way == "embedding":
            shown = layers.Reshape((height, width, 1))(layers.Embedding(classes, height * width)(labels))
        else:
            return images
        return layers.Concatenate()([images, shown])

    def outputs(
        self, features: keras.KerasTensor, labels: keras.KerasTensor, *, returned: keras.KerasTensor
    ) -> dict[str, keras.KerasTensor]:
        """Return {"logits": float32[B], "features": float32[B, F]} and "class_logits" float32[B, K] if they are named.

        Args:
          features: float[B, F'], what the logits are a linear function of.
          labels: int32[B].
          returned: float32[B, F], the features that others may see.
        """
        classes = self._spec.num_classes if self.way == "projection" else 0
        logits = projection_logits(features, labels, classes, spectral_norm=self._spectral_norm)
        outputs = {"logits": logits, "features": returned}
        if self.way == "auxiliary_classifier":
            head = layers.Dense(self._spec.num_classes, dtype="float32", name="class_logits")
            outputs["class_logits"] = constrained(head, self._spectral_norm)(features)
        return outputs


def projection_logits(features, labels, num_classes: int, *, spectral_norm: bool = False):
    """Return logits float32[B] of a projection discriminator: w . features + embedding[label] . features.

    Args:
      features: float[B, F], pooled features of the images.
      labels: int32[B].
      num_classes: K; 0 leaves the second term out, which is an unconditional discriminator.
      spectral_norm: whether w and the embedding are spectrally normalised.

    Reference: Miyato and Koyama, 2018, arXiv:1802.05637, equation 3 and figure 1d.
    """
    unconditional = layers.Dense(1, dtype="float32", name="unconditional")
    logits = constrained(unconditional, spectral_norm)(features)
    if num_classes:
        table = layers.Embedding(num_classes, features.shape[-1], dtype="float32", name="class_embedding")
        embedding = constrained(table, spectral_norm)(labels)
        projection = layers.Dot(axes=1, dtype="float32", name="projection")([embedding, features])
        logits = layers.Add(dtype="float32", name="conditional")([logits, projection])
    return layers.Flatten(dtype="float32", name="logits")(logits)[:, 0]
