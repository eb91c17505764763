"""What the words of a page mean, in half a sentence, for a reader who has trained nothing yet."""

import re

from pipeline.reporting.markup import Html, tag, with_texts

_LEFT = ("a", "abbr", "button", "caption", "h1", "legend", "output", "summary", "nav")  # titles, controls, and unseen

# {how a word stands on a page, as a regular expression: what it means}; no part of a longer word is meant.
_MEANINGS = {
    "generators?": "the network that makes images out of random numbers",
    "discriminators?": "the network that learns to tell real images from generated ones",
    "encoders?": "the network that puts an image into a few numbers",
    "decoders?": "the network that makes an image of those few numbers",
    "vae": "an autoencoder: a network that puts an image into a few numbers, and makes it again of them",
    "parameters": "the numbers in a network that training sets",
    "[Ss]teps?": "one turn of training, in which each network is improved once or a few times",
    "Epochs": "how often all images of the data were seen",
    "log points?": "a step at which the means since the one before were written to metrics.jsonl",
    "checkpoints?(?!/)": "all that a run needs to go on, saved at one step",
    "loss": "the number that a network is trained to make small",
    "penalt(?:y|ies)": "an addition to a loss that keeps a network from what it shall not do",
    "accuracy": "share judged right: of the discriminator all images, of the generator its own that pass for real",
    "rollbacks?": "a return to the last good checkpoint, after numbers that were no longer finite",
    r"collapse watch|quality_watch|Experiment\.watch": "what warns where images become alike or one network has won",
    "collapse": "a generator's images all become alike",
    "Precision$": "the kind of floating-point numbers that the networks compute with",
    "Seed$": "the number that every random draw follows from",
    "Strategy$": "how the work is spread over devices",
    "[Cc]ommit": "the version of the program's source, as git names it",
    "[Ff]ingerprint": "a short code computed from the data: other data have another one",
    r"\w*logits": "a network's verdict as a plain number, before it is turned into a probability",
    r"ema_\w+|EMA|moving averages?": "EMA, averages of the weights over past steps: steadier than the newest weights",
    "latents?|latent_dim": "the random numbers that an image is made from",
    "[Cc]ertificate": "what a score depends on: weights, data, counts, seeds and the like",
    "spread": "standard deviation over several samplings",
    "real against real": "what one half of the real images scores against the other: a perfect model's score",
    "extractor": "the network whose features of images are compared, in place of pixels",
    "resizer": "how images got the size that the extractor takes",
    "frechet_distance": "how far generated images lie from real ones, by mean and covariance of features",
    "kernel_distance": "how far generated images lie from real ones, by a kernel over features",
    "(?:^|(?<=evaluation/))precision$": "share of generated images that lie among the real ones",
    "recall": "share of real images that lie among the generated ones",
    "density": "in how many neighbourhoods of real images a generated one lies; real ones score 1",
    "coverage": "share of real images that have a generated one in their neighbourhood",
    "inception_score": "how sure a classifier is of each image, and how even its classes are",
    "class_accuracy": "share of images that a classifier reads as the class asked for",
    "diversity": "how much the images of a class differ, as a share of how much real ones do",
    "duplicates_of_real": "share of generated images that are nearly a real one",
    "duplicates_of_generated": "share of generated images that are nearly another generated one",
    "negative_elbo": "an autoencoder's bound on how badly it explains the data, in nats for each image",
    "reconstruction": "how badly an image comes back out of an autoencoder",
    "kl_divergence": "how far an encoder's numbers are from plain random ones, in nats for each image",
    "importance_weighted_bound": "a tighter bound than negative_elbo, in nats for each image",
    "active_units": "how many of an encoder's numbers tell something of the image",
}
# What stands between dots or slashes is a word of its own; letters, underscores and dashes are one word.
_WORDS = re.compile(rf"(?<![\w-])(?:{'|'.join(f'({word})' for word in _MEANINGS)})(?![\w-])")


def explained(markup: Html) -> tuple[Html, list[tuple[str, str]]]:
    """Explain each word of the glossary where it first stands.

    Returns:
      The markup, in which a pointer that rests on such a word shows what it means; and [(word, what it means)] of those
      that were found, for readers without a pointer.
    """
    meanings = list(_MEANINGS.values())
    found: dict[str, str] = {}

    def explain(one: re.Match[str]) -> str:
        meaning = meanings[(one.lastindex or 1) - 1]
        if meaning in found.values():
            return one[0]
        found[one[0]] = meaning
        return tag("abbr", one[0], title=meaning)

    return with_texts(markup, lambda text: _WORDS.sub(explain, text), leaving=_LEFT), list(found.items())
