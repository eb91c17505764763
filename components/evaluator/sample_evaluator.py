"""Scores a run by what it draws: many metrics over several sampling seeds, each with its certificate."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from components.evaluator import real_images
from components.evaluator.extractor import Extractor, FeatureNetwork
from components.evaluator.metric import Better, Metric, ModelMetric, SampleSet, Trained
from components.interfaces import (
    DataSource,
    Measurement,
    Networks,
    Positive,
    Sampler,
    Update,
    UserError,
    draws_class_on_request,
)

_MOST = 50_000  # real images, where no number is asked for


class _Reference(NamedTuple):
    """What is the same for all weights."""

    extractor: FeatureNetwork
    data: DataSource
    images: SampleSet
    real: Mapping[str, float]  # half of the real images in the place of generated ones


class SampleEvaluator:
    """Compares generated images with real ones; see `interfaces.Evaluator`.

    A generated set has the labels of the real images, in their order, so that classes are as frequent in both. Beside
    each number stands that of one half of the real images against the other.

    Args:
      networks, averaged, sampler, data, updates: as `interfaces.EvaluatorFactory` says.
      extractor: where features come from.
      metrics: compare sets of images.
      model_metrics: measure a model by what it makes of the real images.
      num_real: real images; None: all of the split, at most 50,000.
      num_fake: generated images a seed; None: as many as real ones.
      seeds: of the samplings, at least three: their spread is told.
      split: whose images are the real ones, such as "test"; None: those that the run is trained on.

    Raises:
      UserError: too few seeds, metrics that tell the same number, or such as need what the extractor has not.
    """

    def __init__(
        self,
        *,
        networks: Networks,
        averaged: Sequence[str],
        sampler: Sampler,
        data: DataSource,
        updates: Sequence[Update],
        extractor: Extractor,
        metrics: Sequence[Metric],
        model_metrics: Sequence[ModelMetric] = (),
        num_real: Positive | None = None,
        num_fake: Positive | None = None,
        seeds: tuple[int, ...] = (0, 1, 2),
        split: str | None = None,
    ) -> None:
        """Hold the parts; no data are opened."""
        self._networks, self._averaged, self._updates = networks, tuple(averaged), updates
        self._sampler, self._data, self._split = sampler, data, split
        self._extractor, self._model_metrics = extractor, model_metrics
        self._num_real, self._num_fake, self._seeds = num_real, num_fake, seeds
        if len(set(seeds)) < 3:
            raise UserError(
                "`SampleEvaluator.seeds` are at least three different ones: a number without its spread tells little. "
                f"Received {seeds}. Use (0, 1, 2)."
            )
        _require_names_apart([*metrics, *model_metrics])
        for metric in metrics:
            self._require_met(metric)
        self._all_metrics = metrics

    def prepare(self) -> None:
        """Open the data, load or train the extractor, and compare real images with each other.

        Raises:
          UserError: any of it cannot be done, or there are too few images for a metric.
        """
        reference = self._reference
        count = self._num_fake or len(reference.images)
        for metric in self._metrics:  # the real images in place of as many generated ones: too few show here
            if count < len(reference.images) // 2:
                metric.measure(reference.images[:count], reference.images[:count])

    def evaluate(self, step: int) -> dict[str, Measurement]:
        """Return {metric: measurement} of the weights of `step`, in the order of the metrics.

        Raises:
          UserError: as `prepare`.
        """
        reference = self._reference
        found: dict[str, list[float]] = {}
        labels = np.resize(reference.images.labels, self._num_fake or len(reference.images))
        trained = Trained(
            networks=self._networks,
            updates=self._updates,
            images=reference.images.images,
            labels=reference.images.labels,
        )
        for seed in self._seeds:
            images = self._sampler.sample(len(labels), seed=seed, labels=labels.tolist())
            fake = reference.extractor(np.asarray(images), labels)
            told = [metric.measure(reference.images, fake) for metric in self._metrics]
            told += [metric.measure_model(trained, seed) for metric in self._model_metrics]
            for name, value in (pair for one in told for pair in one.items()):
                found.setdefault(name, []).append(value)
        return {name: self._measurement(name, values, step) for name, values in found.items()}

    @property
    def metric_names(self) -> list[str]:
        """The names of all that `evaluate` returns."""
        return list(self._better)

    @functools.cached_property
    def _conditional(self) -> bool:
        """Whether the model draws a class on request."""
        return self._networks.spec.num_classes > 1 and draws_class_on_request(self._sampler)

    @functools.cached_property
    def _metrics(self) -> list[Metric]:
        return [one for one in self._all_metrics if self._conditional or "request" not in one.needs]

    @functools.cached_property
    def _reference(self) -> _Reference:
        self._require_some()
        data = self._data if self._split is None else _of_split(self._data, self._split)
        network = self._extractor.load(self._data)
        count = self._num_real or min(data.spec.num_examples, _MOST)
        if count > data.spec.num_examples:
            raise UserError(
                f"`SampleEvaluator.num_real` is at most the size of the data, since an image counts once. Received "
                f"{count}; {data.spec.name} ({data.spec.split}) has {data.spec.num_examples}."
            )
        images, labels = real_images.first(count, data)
        found = network(images, labels if self._conditional else np.zeros_like(labels))
        half = count // 2
        real = [metric.measure(found[:half], found[half : 2 * half]) for metric in self._metrics]
        return _Reference(network, data, found, {name: value for one in real for name, value in one.items()})

    def _measurement(self, name: str, values: list[float], step: int) -> Measurement:
        return Measurement(
            value=float(np.mean(values)),
            spread=float(np.std(values, ddof=1)),
            real=self._reference.real.get(name),
            better=self._better[name],
            certificate=self._certificate(name, values, step),
        )

    def _certificate(self, name: str, values: list[float], step: int) -> dict[str, Any]:
        reference = self._reference
        spec, count = reference.data.spec, len(reference.images)
        of_images = name in reference.real
        certificate: dict[str, Any] = {
            "checkpoint_step": step,
            "weights": f"moving averages of {', '.join(self._averaged)}" if self._averaged else "as trained",
            "data": spec.name,
            "split": spec.split,
            "fingerprint": spec.fingerprint,
            "num_real": count,
            "seeds": list(self._seeds),
            "value_of_each_seed": values,
            "metric": self._settings[name],
        }
        if of_images:
            halves = [count // 2, count // 2]
            certificate |= {"num_fake": self._num_fake or count, "conditional": self._conditional}
            certificate |= {"num_real_against_real": halves, **reference.extractor.certificate}
        return certificate

    @functools.cached_property
    def _better(self) -> dict[str, Better]:
        return {name: way for one in [*self._metrics, *self._model_metrics] for name, way in one.better.items()}

    @functools.cached_property
    def _settings(self) -> dict[str, str]:
        """Return {name: its metric with all settings}."""
        return {name: repr(one) for one in [*self._metrics, *self._model_metrics] for name in one.better}

    def _require_some(self) -> None:
        if not self._metrics and not self._model_metrics:
            raise UserError(
                "`SampleEvaluator.metrics` or `model_metrics` must hold one that this model allows. Received "
                f"{[type(one).__name__ for one in self._all_metrics]}"
                f"{', for a model that draws no class on request' if not self._conditional else ''}. Bind "
                "`SampleEvaluator.metrics = [@frechet.FrechetDistance()]`, or leave that line out."
            )

    def _require_met(self, metric: Metric) -> None:
        lacking = metric.needs - self._extractor.gives - {"request"}
        if lacking:
            what = {"logits": "has logits", "classes": "reads the classes of the data"}
            wanted = " and ".join(what[one] for one in sorted(lacking))
            raise UserError(
                f"`{type(metric).__name__}` needs an extractor that {wanted}. Received "
                f"{type(self._extractor).__name__}. Bind another one, or leave the metric out of "
                "`SampleEvaluator.metrics`."
            )


def _of_split(data: DataSource, split: str) -> DataSource:
    """Return another split of the same data."""
    if not is_dataclass(data) or isinstance(data, type) or "split" not in [field.name for field in fields(data)]:
        raise UserError(
            f"`SampleEvaluator.split` is for data that have splits. Received {split!r} for {type(data).__name__}. "
            "Leave it out."
        )
    return replace(data, split=split)


def _require_names_apart(metrics: Sequence[Metric | ModelMetric]) -> None:
    names = [name for one in metrics for name in one.better]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(
            f"`SampleEvaluator.metrics` tell each number once. Received twice: {', '.join(twice)}. Name each "
            "metric once."
        )
