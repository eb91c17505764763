"""What is known of the parameters of libraries that do not annotate them."""

import inspect
import sys
from typing import Annotated, Any

from annotated_types import Ge, Gt, Lt

NOTHING = inspect.Parameter.empty


class AnythingMade:
    """Stands in an annotation for any reference and any container: what libraries take beside a plain value."""


class WrittenWithAPoint:
    """Stands in an annotation for a float that a library takes no integer for."""


def by_default(default: Any) -> Any:
    """Return the annotation that a default value suggests, wide enough for what libraries take beside it."""
    if isinstance(default, bool):
        return bool | AnythingMade
    if isinstance(default, (int, float)):
        return float | AnythingMade
    if isinstance(default, str):
        return str | AnythingMade | None
    return NOTHING


def names_every_keyword(cls: type) -> bool:
    """Return whether **kwargs of a class hold nothing but what its bases name: so it is with Keras."""
    return (cls.__module__ or "").startswith("keras.")


def annotations(target: Any) -> dict[str, Any]:
    """Return {parameter: annotation} of an optimizer or a schedule of Keras, which has none of its own."""
    keras = sys.modules.get("keras")
    if keras is None or not inspect.isclass(target):
        return {}
    if issubclass(target, keras.optimizers.Optimizer):
        return _of_optimizers(keras.optimizers.schedules.LearningRateSchedule)
    if issubclass(target, keras.optimizers.schedules.LearningRateSchedule):
        return _OF_SCHEDULES
    return {}


_POSITIVE = Annotated[float, Gt(0)]
_NOT_NEGATIVE = Annotated[float, Ge(0)]
_FRACTION = Annotated[float, Ge(0), Lt(1)]
_COUNT = Annotated[int, Gt(0)]

_OF_SCHEDULES: dict[str, Any] = {
    "initial_learning_rate": _NOT_NEGATIVE,
    "end_learning_rate": _NOT_NEGATIVE,
    "warmup_target": _NOT_NEGATIVE | None,
    "alpha": _NOT_NEGATIVE,
    "decay_steps": _COUNT,
    "first_decay_steps": _COUNT,
    "warmup_steps": Annotated[int, Ge(0)],
    "decay_rate": _POSITIVE,
    "power": _POSITIVE,
    "t_mul": _POSITIVE,
    "m_mul": _POSITIVE,
    "boundaries": list[float] | tuple[float, ...],
    "values": list[float] | tuple[float, ...],
}


def _of_optimizers(schedule: type) -> dict[str, Any]:
    return {
        "learning_rate": Annotated[float, Gt(0), WrittenWithAPoint] | schedule,
        "epsilon": _POSITIVE,
        "weight_decay": _NOT_NEGATIVE | None,
        **dict.fromkeys(("beta_1", "beta_2", "rho", "momentum", "ema_momentum"), _FRACTION),
        **dict.fromkeys(("clipnorm", "clipvalue", "global_clipnorm", "loss_scale_factor"), _POSITIVE | None),
        **dict.fromkeys(("ema_overwrite_frequency", "gradient_accumulation_steps"), _COUNT | None),
    }
