"""A parsed configuration: builds the experiment and answers for every value."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from components.errors import UserError
from pipeline.configs import blame, checks, handover, idle, operative, parts, sources, usage, wiring
from pipeline.configs.faults import Fault, raise_user_error, refuse
from pipeline.configs.statements import written

if TYPE_CHECKING:
    from pipeline.experiment import Experiment


@dataclass(frozen=True)
class Setting:
    """One value that takes effect, and where it comes from."""

    part: str  # scope/module.function; empty: a macro
    name: str  # the parameter or macro
    value: str  # as gin text
    source: str  # file:line, --gin_param:line, or default
    overrides: str = ""  # where the value stands that it replaces; empty: it replaces none


def parse(gin_files: Sequence[str], gin_params: Sequence[str] = ()) -> "Config":
    """Read and check a configuration.

    gin keeps one configuration a process: this forgets the one before, so build and use a `Config` before the next
    call.

    Args:
      gin_files: names, as `find` takes them; a later file overrides an earlier one.
      gin_params: gin text that overrides every file, under the imports of all files and its own.

    Returns:
      The configuration, with nothing built yet.

    Raises:
      UserError: something is wrong; the message tells every fault that this stage finds, with file and line.
    """
    text = sources.collect(gin_files, gin_params)
    in_text, without_effect = checks.check(text), idle.check(text)
    if in_text:
        is_read = any(source.statements for source in text.sources)
        refuse([*in_text, *without_effect, *(_beyond(text, in_text) if is_read else [])])
    found, in_parts = parts.resolve(text)
    faults = [*without_effect, *in_parts.names, *in_parts.values]
    if not in_parts.names:
        faults += wiring.check(found, {fault.place for fault in faults})
    refuse(faults)
    handover.forget()
    handover.bind(found)
    return Config(found)


def _beyond(text: sources.Text, in_text: Sequence[Fault]) -> list[Fault]:
    """Return the faults of the statements that could be read, so that all are told at once."""
    _, findings = parts.resolve(text.without(in_text))
    known = {(fault.place.file, fault.place.line) for fault in in_text}
    # What is lacking may stand in a statement that could not be read.
    told = [one for one in [*findings.names, *findings.values] if "also needs" not in one.message]
    return [one for one in told if (one.place.file, one.place.line) not in known]


class Config:
    """One configuration, given to gin."""

    _current: "Config | None" = None

    def __init__(self, found: parts.Parts) -> None:
        """Take what `parse` found."""
        self._parts = found
        self._idle: set[usage.Key] = set()
        Config._current = self

    def experiment(self) -> "Experiment":
        """Build the experiment that the configuration describes.

        Raises:
          UserError: nothing of it is bound, or a part refuses its values.
        """
        self._require_current()
        root = wiring.root_of(self._parts)
        if not root:
            place = parts.whole_file(self._parts.text)
            raise_user_error(
                f"{place}: A configuration fills `experiment.Experiment`. Received one that binds nothing of it.\n"
                "  Add: from pipeline import experiment, and experiment.Experiment.data = @module.name()"
            )
        with self.explaining():
            return handover.configurable(self._parts.targets[root])()

    @contextmanager
    def explaining(self, made: object = None) -> Iterator[None]:
        """Add the lines of the configuration to an error that is the user's to mend; another passes as it is.

        It is the user's where a part says so, and where a part of a library refuses what it is given.

        Args:
          made: what is asked for something, having been made from the configuration.
        """
        try:
            yield
        except Exception as error:  # gin appends to the message of whatever is raised the parts that were being called
            if not isinstance(error, UserError) and not blame.is_third_party(self._parts, error):
                raise
            raise_user_error(blame.explain(self._parts, error, made), error)

    def refuse_unused(self) -> None:
        """Refuse what had no effect; call it after everything was built and every objective traced.

        A binding that an override made idle is no fault, but `operative_text` leaves it out from then on.

        Raises:
          UserError: names every binding, macro and scope that was never used, with file and line.
        """
        self._require_current()
        faults, self._idle = usage.unused(self._parts, handover.calls(self._parts))
        refuse(faults)

    def operative_text(self) -> str:
        """Return the whole configuration as one runnable text, defaults as comments."""
        return operative.write(self._parts, self._idle)

    def settings(self) -> list[Setting]:
        """Return every value of `operative_text`, defaults included, in its order, with where it comes from."""
        replaced = {id(new): old for old, new in self._parts.overridden}
        _, rows = operative.rows(self._parts, self._idle)
        return [
            Setting(
                row.part,
                row.name,
                written(row.value),
                str(row.binding.place) if row.binding else "default",
                str(replaced[id(row.binding)].place) if id(row.binding) in replaced else "",
            )
            for row in rows
        ]

    def _require_current(self) -> None:
        if Config._current is not self:
            raise RuntimeError("gin keeps one configuration a process, and another was parsed since. Parse this again.")
