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
