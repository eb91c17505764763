"""Prints what completes this program's flags and shipped gin files in bash and zsh.

    eval "$(python -m tools.completion)"

Put that line into ~/.bashrc or ~/.zshrc. It serves `gantry` and `python -m pipeline.main`; other uses of python are
completed as before, by file name.
"""

import sys

from absl import flags

from pipeline import configs, main

_SCRIPT = r"""
if [ -n "$ZSH_VERSION" ]; then autoload -U +X bashcompinit && bashcompinit; fi
_gantry() {
  local cur="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" flag="" lead="" words=""
  COMPREPLY=()
  case "${COMP_WORDS[0]##*/}" in
    python*) case " ${COMP_WORDS[*]} " in *" -m pipeline.main "*) ;; *) return ;; esac ;;
  esac
  # bash cuts words at "=", zsh does not.
  if [ "$cur" = "=" ]; then flag="$before"; cur=""
  elif [ "$before" = "=" ]; then flag="${COMP_WORDS[COMP_CWORD-2]}"
  elif [ "${cur#--*=}" != "$cur" ]; then flag="${cur%%=*}"; lead="$flag="; cur="${cur#*=}"
  elif [ "${before#--}" != "$before" ]; then flag="$before"
  fi
  case "$flag" in
VALUES
    *) flag="" ;;
  esac
  if [ -z "$flag" ]; then
    words="FLAGS"
    COMPREPLY=( $(compgen -W "$words" -- "$cur") )
    case "${COMPREPLY[0]}" in *=) type compopt >/dev/null 2>&1 && compopt -o nospace 2>/dev/null ;; esac
    return
  fi
  COMPREPLY=( $(compgen -P "$lead" -W "$words" -- "$cur") )
}
complete -o bashdefault -o default -F _gantry gantry python python3
"""


def script() -> str:
    """Return the shell text, for the flags and the shipped files that there are now."""
    values = {"gin_file": [f"{name}.gin" for name in configs.shipped()]}
    names = main.defined_flags()
    for name in names:
        choices = getattr(flags.FLAGS[name].parser, "enum_values", None)
        if choices:
            values[name] = list(choices)
    values |= {"strategy": ["auto", "tpu", "mirrored", "multi_worker", "one_device", "cpu:2"], "checkpoint": ["latest"]}
    values["labels"] = ["balanced"]
    cases = [f'    --{name}) words="{" ".join(words)}" ;;' for name, words in values.items()]
    cases += [f"    --{name}) return ;;" for name in names if name not in values and not flags.FLAGS[name].boolean]
    shown = " ".join(f"--{name}" + ("" if flags.FLAGS[name].boolean else "=") for name in names)
    return _SCRIPT.replace("VALUES", "\n".join(cases)).replace("FLAGS", shown).lstrip()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(f"{__doc__}")
    print(script())
