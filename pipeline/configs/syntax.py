"""Says in a newcomer's words why a statement is no gin."""

import re
import tokenize

from pipeline.configs.faults import Fault, Place

ARITHMETIC = "gin does not compute"
REPEATED_KEY = "repeated key"

_PYTHON_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None", "nil": "None", "yes": "True"}
_PYTHON_WORDS |= {"no": "False", "on": "True", "off": "False"}
_OPERATOR = re.compile(r"(?:[\w)\]]\s*(?:\*\*?|//?|\+|-|%)|-)\s*[\w(@%.]")
_STRINGS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_COMMENT = re.compile(r"#.*")


def line_of(error: BaseException, count: int) -> int:
    """Return which of the `count` lines of the statement the error is about; 1 is the first."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    if isinstance(error, tokenize.TokenError) and "EOF" not in str(error.args[0]):  # at the end, all of it is in doubt
        line = error.args[1][0]
    return min(max(line or 1, 1), count)


def no_gin_file(fault: Fault, file: str) -> Fault:
    """Return the fault of a file that holds something else, in place of one fault for every line of it."""
    message = f"A configuration is a gin file: lines such as `NAME = value`. Received {file}, of which no line is gin."
    return Fault(fault.place, message, "Check that --gin_file or include names the file that you mean.")


def not_text(file: str, why: str) -> Fault:
    """Return the fault of a file that cannot be read as text."""
    message = f"A configuration is a gin file, which is plain text in UTF-8. Received {file}: {why}."
    return Fault(Place(file, 0), message, "Check that --gin_file or include names the file that you mean.")


def explain(error: BaseException, chunk: str) -> tuple[str, str]:
    """Explain why a statement cannot be read.

    Args:
      error: what gin's parser or Python's tokenizer raised.
      chunk: the statement, maybe of several lines.

    Returns:
      (rule and what was received, remedy).
    """
    words = str(error.args[0]) if error.args else ""
    code = _COMMENT.sub("", _STRINGS.sub("''", chunk)).strip()
    keyword = re.match(r"\w*", code)
    value = code.partition("=")[2].strip()
    for rule in (_explain_import, _explain_quotes, _explain_delimiters, _explain_statement):
        found = rule(code, keyword.group() if keyword else "")
        if found:
            return found
    if words.startswith(REPEATED_KEY):
        key = words.removeprefix(REPEATED_KEY).strip()
        return f"A dict names each key once. Received twice: {key}.", "Remove one of the two."
    return _explain_value(value, words, isinstance(error, (TypeError, RecursionError)))


def _explain_import(code: str, keyword: str) -> tuple[str, str] | None:
    if keyword == "include":
        return (
            "`include` takes a file name in quotes. Received `" + code.splitlines()[0] + "`.",
            "Write it as: include 'base/NAME.gin'",
        )
    if keyword in ("import", "from") and "=" not in code:
        if re.match(r"from\s+\.", code):
            return "An import names a module from the top. Received a relative one.", "Write: from a.b import c"
        if "*" in code or "," in code or "(" in code:
            return (
                f"An import line imports one module. Received `{code.splitlines()[0]}`.",
                "Write one line for each: from a.b import c",
            )
        return (
            f"An import is `import a`, `import a.b` or `from a.b import c`. Received `{code.splitlines()[0]}`.",
            "Write: from a.b import c",
        )
    return None


def _explain_quotes(code: str, keyword: str) -> tuple[str, str] | None:
    if code == "''":
        return (
            "A binding is `NAME = value`; quotes are for strings alone. Received all of it in quotes.",
            "Remove the outer quotes. A shell takes away one pair of them, not two.",
        )
    return None


def _explain_delimiters(code: str, keyword: str) -> tuple[str, str] | None:
    if re.search("['\"]", code.replace("''", "")):  # closed strings have become '' before
        return "A string begins and ends with the same quote. Received one that is never closed.", "Close the quote."
    for opening, closing in ("()", "[]", "{}"):
        if code.count(opening) > code.count(closing):
            return (
                f"Every bracket is closed. Received a `{opening}` that is never closed.",
                f"Add `{closing}`, or the comma that is missing before it.",
            )
        if code.count(opening) < code.count(closing):
            return f"Every bracket is opened. Received a `{closing}` that nothing opens.", f"Remove the `{closing}`."
    return None


def _explain_statement(code: str, keyword: str) -> tuple[str, str] | None:
    first = code.splitlines()[0] if code else ""
    if keyword in ("def", "class", "if", "for", "while", "with", "return", "try", "lambda", "print"):
        return f"A gin file holds bindings, not Python. Received `{first}`.", "Put code in a module and import it here."
    if re.match(r"[\w./]+\s*(\+|-|\*|/|:|=)=", code):
        return f"A binding is `NAME = value`. Received `{first}`.", "Use one equals sign."
    if re.match(r"[\w./]+[ \t]*:[ \t]*\S", code):
        return f"A binding is `NAME = value`. Received a colon: `{first}`.", "Use an equals sign: " + re.sub(
            r"\s*:\s*", " = ", first, count=1
        )
    if re.match(r"[@%]", code):
        return f"A name on the left has neither @ nor %. Received `{first}`.", f"Write: {first[1:]}"
    if re.match(r"[\w./ ]+-[\w./ -]*=", code):
        return f"A name has no hyphen. Received `{first}`.", "Use underscores."
    if re.match(r"[\w./]+\s*:$", first):
        return f"A block is `NAME:`, then indented lines. Received `{first}` with none.", "Indent the lines below it."
    if "=" not in code:
        return f"A binding is `NAME = value`. Received `{first}`.", "Add the equals sign and the value."
    if not re.match(r"[A-Za-z_][\w./]*\s*=", code):
        return (
            f"A binding is `scope/module.function.parameter = value`, with no space inside a name. Received `{first}`.",
            "Mend the name on the left of the equals sign.",
        )
    return None


def _explain_value(value: str, words: str, is_python: bool) -> tuple[str, str]:
    first = value.splitlines()[0].strip() if value else ""
    unquoted = re.search(r"Failed to parse token '-?([A-Za-z_]\w*)", words)
    if is_python:
        return f"A value is a literal, %MACRO or @reference. Received one that Python refuses: {words}.", "Mend it."
    if not first:
        return "A binding has a value. Received none.", "Write it after the equals sign."
    if re.match(r"[./~\\]", first):
        return f"A path is a string, in quotes. Received `{first}`.", f"Write: '{first}'"
    if re.fullmatch(r"[^\s,]+,", value):
        return f"A value is one literal. Received `{first}`, which ends with a comma.", "Remove the comma."
    if ARITHMETIC in words or (not unquoted and _OPERATOR.search(_without_references(value))):
        return (
            f"A value is a literal, %MACRO or @reference; gin does not compute. Received `{first}`.",
            "Write the result instead of the arithmetic.",
        )
    if re.match(r"@[\w./]+\s*\(", first):
        return (
            f"A reference takes no arguments. Received `{first}`.",
            "Bind each argument on a line of its own: NAME.parameter = value",
        )
    if unquoted:
        return _explain_unquoted(value, unquoted.group(1))
    if re.match(r"[@%]", first):
        return f"After @ or % comes a name, without spaces. Received `{first}`.", "Write: @module.function or %MACRO"
    return (
        f"A value is one literal, %MACRO or @reference. Received `{first}`.",
        "One binding a line, commas between the items of a list, strings in quotes.",
    )


def _explain_unquoted(value: str, word: str) -> tuple[str, str]:
    if word.lower() in _PYTHON_WORDS:
        right = _PYTHON_WORDS[word.lower()]
        message = f"Words of Python are written as in Python. Received `{word}`."
        return message, f"Write {right}, or '{word}' for the string."
    if word.lower() in ("nan", "inf", "infinity"):
        return (
            f"A number is finite. Received `{word}`.",
            "Write a number, such as 1e-3, or None where it may be left out.",
        )
    whole = re.search(rf"\b{word}[\w./]*", value)
    name = whole.group() if whole else word
    return (
        f"A string is written in quotes. Received `{name}` without them.",
        f"Quote it: '{name}'; or, if it names a function or class, put @ before it: @{name}; a macro takes %: %{name}.",
    )


def _without_references(value: str) -> str:
    """Return the value with @scope/name and %scope/name replaced, whose slashes and marks are no arithmetic."""
    return re.sub(r"[@%][\w./]+(\(\))?", "x", value)
