"""Reads Swift source just far enough to tell code, comments and string literals apart. Used by the checks."""

import pathlib
import re
from dataclasses import dataclass, field


class Unreadable(Exception):
    """A literal or comment that does not end; the message is `line: what`."""


@dataclass
class Literal:
    """A string literal. `text` has an interpolation's code replaced by nothing; `interpolated` says there was one."""

    line: int
    start: int
    end: int
    multiline: bool
    text: str = ""
    interpolated: bool = False


@dataclass
class Source:
    """A file's code, with comments blanked and each literal's inside blanked, of the same length as the file."""

    code: str
    literals: list[Literal] = field(default_factory=list)

    def line(self, position: int) -> int:
        return self.code.count("\n", 0, position) + 1


OPENING = re.compile(r'(#*)("""|")')


def read(text: str) -> Source:
    """Lexes `text`. Raises `Unreadable`."""
    code = list(text)
    literals: list[Literal] = []
    end = _code(text, 0, code, literals, nested=False)
    assert end == len(text)
    return Source("".join(code), sorted(literals, key=lambda literal: literal.start))


def _blank(code: list[str], start: int, end: int) -> None:
    for index in range(start, end):
        if code[index] != "\n":
            code[index] = " "


def _code(text: str, position: int, code: list[str], literals: list[Literal], nested: bool) -> int:
    """Reads code up to the end, or up to the parenthesis that closes an interpolation."""
    depth = 0
    while position < len(text):
        if text.startswith("//", position):
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            _blank(code, position, end)
            position = end
        elif text.startswith("/*", position):
            end = _comment(text, position)
            _blank(code, position, end)
            position = end
        elif opening := OPENING.match(text, position):
            position = _literal(text, position, opening, code, literals)
        else:
            if text[position] == "(":
                depth += 1
            elif text[position] == ")":
                if depth == 0 and nested:
                    return position
                depth -= 1
            position += 1
    if nested:
        raise Unreadable(f"{_line(text, position)}: an interpolation does not end")
    return position


def _comment(text: str, start: int) -> int:
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise Unreadable(f"{_line(text, start)}: a comment does not end")


def _literal(text: str, start: int, opening: re.Match, code: list[str], literals: list[Literal]) -> int:
    hashes, quote = opening.groups()
    literal = Literal(_line(text, start), start, start, multiline=quote == '"""')
    closing, escape = quote + hashes, "\\" + hashes
    position = plain = opening.end()

    def keep(end: int) -> None:
        literal.text += text[plain:end]
        _blank(code, plain, end)

    while position < len(text):
        if text.startswith(closing, position):
            keep(position)
            literal.end = position + len(closing)
            literals.append(literal)
            return literal.end
        if text.startswith(escape + "(", position):
            keep(position)
            literal.interpolated = True
            inside = position + len(escape) + 1
            _blank(code, position, inside)
            position = _code(text, inside, code, literals, nested=True) + 1
            _blank(code, inside, position)
            plain = position
        elif text.startswith(escape, position):
            position += len(escape) + 1
        elif text[position] == "\n" and not literal.multiline:
            break
        else:
            position += 1
    raise Unreadable(f"{literal.line}: a string literal does not end")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    """The Swift files below `folder`, sorted."""
    return sorted(folder.rglob("*.swift"))
