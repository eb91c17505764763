"""Reads, checks and writes configurations. The only package that imports gin.

A configuration is gin text: files that include others, and parameters of the command line. It goes through these
stages, each of which tells all the faults it finds at once:

  sources     files and parameters are read into `statements` with their places     (nothing is imported)
  checks      names, macros, duplicates, unset values: what the text alone shows    (nothing is imported)
  idle        macros, imports and scopes that nothing uses                          (nothing is imported)
  parts       modules are imported, every name is found, every value is compared with its annotation by `types_check`
  wiring      references are followed from the experiment on: what is missing, circular or out of reach
  handover    gin receives it
  usage       after everything was built: what had no effect

`operative` writes it back as one runnable text, `comparison` compares two such texts, `blame` leads from an error of
a part to the lines that configure it, and `faults` tells every mistake with file, line, rule, what was received and a
remedy.
"""

from pipeline.configs.comparison import differences, values
from pipeline.configs.config import Config, Setting, parse
from pipeline.configs.locate import find, shipped

__all__ = ["Config", "Setting", "differences", "find", "parse", "shipped", "values"]
