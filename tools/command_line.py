"""What the tools share: a parser whose help is the tool's own text."""

import argparse


def parser(tool: str, text: str | None, **settings: bool) -> argparse.ArgumentParser:
    """Return a parser of `python -m tools.TOOL`.

    Args:
      tool: its name.
      text: what the module says of itself; its first paragraph heads the help, the others end it.
      **settings: of the parser.
    """
    summary, _, rest = (text or "").partition("\n\n")
    return argparse.ArgumentParser(
        prog=f"python -m tools.{tool}",
        description=summary,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **settings,
    )


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """Give a parser the flags of one configuration, as the main program has them."""
    files = "A path, or the name of a shipped file. Repeatable."
    parser.add_argument("--gin_file", action="append", required=True, help=files)
    lines = "A line of gin that overrides the files. Repeatable."
    parser.add_argument("--gin_param", action="append", default=[], help=lines)
