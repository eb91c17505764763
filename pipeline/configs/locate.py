"""Finds gin files: as given, then among those that are shipped, from any working directory."""

from pathlib import Path

from pipeline.configs.faults import did_you_mean, raise_user_error

_PIPELINE = Path(__file__).resolve().parents[1]


def shipped_root() -> Path:
    """Return the folder of the shipped gin files: inside an installed `pipeline`, next to it in a source tree."""
    for root in (_PIPELINE / "gin", _PIPELINE.parent / "gin"):
        # Beside an installed `pipeline` there is the library gin, which is a package; ours is a plain folder.
        if root.is_dir() and not (root / "__init__.py").exists():
            return root
    return _PIPELINE / "gin"


def shipped() -> list[str]:
    """Return the names of the shipped files that can be run, without .gin, sorted."""
    return sorted(path.stem for path in shipped_root().glob("*.gin"))


def find(name: str) -> Path:
    """Find a gin file.

    Args:
      name: a path, or the name of a shipped file, with or without .gin.

    Returns:
      The path of an existing file.

    Raises:
      UserError: there is none; the message lists the searched places and the nearest names.
    """
    tried = candidates(name, [Path()])
    for path in tried:
        if path.is_file():
            return path
    raise_user_error(miss("--gin_file", name, tried))


def candidates(name: str, folders: list[Path]) -> list[Path]:
    """Return the paths that `name` may stand for, in the order in which they are tried.

    Args:
      name: as the user wrote it.
      folders: searched before the shipped files.
    """
    if not name.strip() or "\0" in name:
        return []
    stems = [name] if name.endswith(".gin") else [name, f"{name}.gin"]
    places = [Path(stem).expanduser() for stem in stems]
    return [folder / place for folder in [*folders, shipped_root()] for place in places]


def miss(what: str, name: str, tried: list[Path]) -> str:
    """Return the message that nothing was found.

    Args:
      what: the flag or statement that named it.
      name: what it named.
      tried: the paths looked at.
    """
    folders = [path for path in tried if path.is_dir()]
    if folders:
        return f"`{what}` must name a gin file. Received {name!r}, which is a folder: {folders[0]}."
    root = shipped_root()
    names = {path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.gin")}
    names = {known for known in names if "/" not in known} if what.startswith("--") else names
    names |= {path.stem for path in Path().glob("*.gin")} if what.startswith("--") else set()
    plain = name.removesuffix(".gin")
    hint = did_you_mean(plain, names) or (f"Shipped: {', '.join(shipped())}." if shipped() else "")
    searched = ", ".join(dict.fromkeys(str(path) for path in tried)) or "nowhere"
    return f"`{what}` must name an existing gin file. Received {name!r}. Searched {searched}. {hint}".rstrip()
