"""What tells of a run while it trains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.interfaces import Choosy, Preview, UserError, Watch, Writer
from pipeline.listening import Means


@dataclass(frozen=True, kw_only=True)
class Outlets:
    """What tells of a run: previews are drawn, and writers keep them and the curves.

    Attributes:
      previews: {name: preview}, in the order in which they are drawn.
      writers: each is given all.
      watch: follows the quality; None: nothing does.
      means: of the log point that is being made.
    """

    previews: Mapping[str, Preview]
    writers: Sequence[Writer]
    watch: Watch | None = None
    means: Means = field(default_factory=Means)

    def require_previews(self) -> None:
        """Raise UserError where a writer waits for a preview that is never drawn."""
        for writer in self.writers:
            lacking = (
                [name for name in writer.previews if name not in self.previews] if isinstance(writer, Choosy) else []
            )
            if lacking:
                kind = type(writer).__name__
                raise UserError(
                    f"`{kind}.preview` must be one of `Experiment.previews`. Received {lacking[0]!r}; there are "
                    f"{', '.join(self.previews) or 'none'}. Name one of those, or add it."
                )
