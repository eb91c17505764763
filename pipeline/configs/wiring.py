"""Follows the references from the experiment on, to find what is missing, circular or out of reach."""

from collections.abc import Iterator

from pipeline.configs.checks import is_required, within
from pipeline.configs.faults import Fault, Place, did_you_mean
from pipeline.configs.parts import Parts, whole_file
from pipeline.configs.signatures import readable, signature_of
from pipeline.configs.statements import Binding, Macro, leaves

ROOT = "pipeline.experiment.Experiment"


def root_of(parts: Parts) -> str:
    """Return the dotted path by which the configuration knows Experiment; empty where it binds nothing of it."""
    for name, target in parts.targets.items():
        if f"{target.__module__}.{target.__qualname__}" == ROOT:
            return parts.names.get(target, name)
    return ""


def check(parts: Parts, faulty: set[Place]) -> list[Fault]:
    """Return the faults that lie between bindings: parts that lack a value, circles, parts that nothing uses.

    Args:
      parts: the configuration.
      faulty: statements already known to be wrong, whose references are not followed.
    """
    return [*_Calls(parts, faulty).check(), *_check_never_used(parts, faulty), *_check_shared_players(parts)]


def inner(parts: Parts, binding: Binding) -> Iterator[tuple[str, str, bool, Binding]]:
    """Yield (scope, part, evaluated, where it is written) of each reference in a value, macros followed."""
    for reference, name in parts.references(binding):
        yield reference.scope, name, reference.evaluate, binding
    for leaf in leaves(binding.value):
        if isinstance(leaf, Macro) and leaf.name in parts.macros:
            for scope, name, evaluate, where in inner(parts, parts.macros[leaf.name]):
                yield scope or leaf.name, name, evaluate, where  # gin evaluates a macro in a scope of its name


class _Calls:
    """Follows the calls that gin will make by itself: the experiment, and each @name() from there on."""

    def __init__(self, parts: Parts, faulty: set[Place]) -> None:
        self._parts = parts
        self._faulty = faulty
        self._seen: set[tuple[str, str]] = set()  # parts that the program will call, with the scope of the call
        self._faults: list[Fault] = []

    def check(self) -> list[Fault]:
        """Return the faults met on the way."""
        root = root_of(self._parts)
        if root:
            self._follow(root, "", None, [])
        return list(dict.fromkeys(self._faults))

    def _follow(self, name: str, scope: str, called_at: Binding | None, path: list[tuple[str, str]]) -> None:
        """Check one call that gin makes."""
        if (scope, name) in path and called_at:
            message = f"A part does not need itself. Received a circle of references that leads back to `{name}`."
            self._faults.append(Fault(called_at.place, message, "Leave out one of them."))
            return
        target = self._parts.targets.get(name)
        signature = signature_of(target) if target is not None else None
        for missing in signature.required if signature else ():
            if missing not in self._parts.in_scope(name, scope):
                self._faults.append(_explain_missing(self._parts, name, scope, missing, called_at))
        self._follow_arguments(name, scope, [*path, (scope, name)])

    def _follow_arguments(self, name: str, scope: str, path: list[tuple[str, str]]) -> None:
        """Check the calls that gin makes for the arguments of one call."""
        for binding in self._parts.in_scope(name, scope).values():
            for inner_scope, inner_name, evaluate, where in inner(self._parts, binding):
                if where.place in self._faulty:
                    continue
                key = inner_scope or scope, inner_name
                if evaluate:
                    self._follow(inner_name, key[0], where, path)
                elif key not in self._seen:  # the program calls it and may give what it requires
                    self._seen.add(key)
                    self._follow_arguments(inner_name, key[0], [])


def _explain_missing(parts: Parts, name: str, scope: str, parameter: str, called_at: Binding | None) -> Fault:
    target = parts.targets[name]
    signature = signature_of(target)
    kind = readable(signature.parameters[parameter].annotation) if signature else "anything"
    short = ".".join(name.split(".")[-2:])
    line = f"{scope + '/' if scope else ''}{short}.{parameter} = VALUE"
    place = called_at.place if called_at else whole_file(parts.text)
    elsewhere = sorted({one.scope for one in parts.bindings_of(name) if one.parameter == parameter and one.scope})
    hint = f" It is bound only in the scope {', '.join(f'`{one}/`' for one in elsewhere)}." if elsewhere else ""
    where = f" in scope `{scope}/`" if scope else ""
    message = f"`{short}.{parameter}` has no default. Received no value for it{where}.{hint}"
    return Fault(place, message, f"Add the line: {line}, which takes {kind}.")


def _check_never_used(parts: Parts, faulty: set[Place]) -> list[Fault]:
    """Refuse bindings of a part that no reference names, not even an overridden one."""
    root = root_of(parts)
    if not root:
        return []
    named = {name for binding in parts.text.bindings for _, name in parts.references(binding)} | {root}
    faults = []
    for binding in parts.text.bindings:
        name = parts.name_of(binding.selector, binding.place.file)
        is_known = not binding.is_macro and name in parts.targets and binding.place not in faulty
        if is_known and name not in named:
            message = f"Every binding has an effect. Received one of `{binding.selector}`, which no reference names."
            short = {other.rpartition(".")[2] for other in named}
            hint = did_you_mean(binding.selector.rpartition(".")[2], short, is_short_listed=False)
            hint = hint or f"Refer to it as @{binding.selector}, or remove the line."
            faults.append(Fault(binding.place, message, hint))
    return faults


def _check_shared_players(parts: Parts) -> list[Fault]:
    """Refuse one player in the place of two: both would train with the settings, and the networks, of one."""
    seen: dict[tuple[str, str, str, str], Binding] = {}
    faults = []
    for (scope, name, _), binding in parts.effective.items():
        for inner_scope, inner_name, evaluated, _ in inner(parts, binding):
            if binding.is_macro or not evaluated or not inner_name.endswith("interfaces.Player"):
                continue
            earlier = seen.setdefault((scope, name, inner_scope, inner_name), binding)
            if earlier is not binding:
                message = f"Two players never share one. Received the same for `{earlier.name}` and `{binding.name}`."
                hint = f"Let each have a scope of its own: @{binding.parameter}/interfaces.Player()"
                faults.append(Fault(binding.place, message, hint))
    return faults


def reachable(parts: Parts) -> tuple[set[tuple[str, str]], set[str]]:
    """Return what the experiment may use: {(scope, part)} as references name them, and {macro}.

    A reference without a scope is used in whatever scope calls it; it stands here with every scope met so far.
    """
    root = root_of(parts)
    found: set[tuple[str, str]] = {("", root)} if root else set()
    macros: set[str] = set()
    waiting = list(found)
    while waiting:
        scope, name = waiting.pop()
        for binding in parts.bindings_of(name):
            if not (within(scope, binding.scope) or within(binding.scope, scope)) or is_required(binding.value):
                continue
            macros |= _macros_in(parts, binding)
            for inner_scope, inner_name, _, _ in inner(parts, binding):
                for key in {(inner_scope or scope, inner_name), (inner_scope, inner_name)} - found:
                    found.add(key)
                    waiting.append(key)
    return found, macros


def _macros_in(parts: Parts, binding: Binding) -> set[str]:
    found: set[str] = set()
    for leaf in leaves(binding.value):
        if isinstance(leaf, Macro) and leaf.name in parts.macros:
            found |= {leaf.name} | _macros_in(parts, parts.macros[leaf.name])
    return found
