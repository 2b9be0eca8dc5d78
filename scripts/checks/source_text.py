"""Reads source files for the checks in this folder: finds them, and tells code, comments and strings apart."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A comment, a string (raw, of several lines, with interpolations two levels deep) or a character of C.
TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<string>#+"(?:""(?s:.*?)"""|[^\n]*?")#+|"""(?s:.*?)"""'
    r'|"(?:\\\((?:[^()"\n]|"[^"\n]*"|\([^()\n]*\))*\)|\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])')", re.DOTALL)


def blank(match):
    """The white space of a match: the text keeps its length and its lines, without the words."""
    return re.sub(r"[^\n]", " ", match[0])


def code_of(text):
    """The text with white space in place of its comments and strings."""
    return TOKEN.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def sources(arguments, default, suffixes):
    """The name and the text of each file with one of the suffixes: of the arguments, files and folders, or of the default
    paths, as far as these exist. The name is relative to the repository where the file lies in it."""
    seen = set()
    for argument in arguments or default:
        path = pathlib.Path(argument) if arguments else ROOT / argument
        if not path.exists():
            if arguments:
                sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {argument} does not exist")
            continue
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            place = file.resolve()
            if file.suffix not in suffixes or place in seen or not file.is_file():
                continue
            if any(part in (".build", ".work") for part in file.parts):
                continue
            seen.add(place)
            name = str(place.relative_to(ROOT)) if place.is_relative_to(ROOT) else str(file)
            yield name, file.read_text(encoding="utf-8", errors="replace")
