"""Character classes as ripgrep reads them: POSIX names, Unicode properties, nesting, `&&`, `--` and `~~`."""

from __future__ import annotations

import re

_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "ascii": r"\x00-\x7f",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\x0b\x0c",
    "upper": "A-Z",
    "word": "a-zA-Z0-9_",
    "xdigit": "0-9a-fA-F",
}
_POSIX_NAME = re.compile(r"\[:(\^?)(\w+):\]")
_HEX = re.compile(r"\\(?:[xuU]\{([0-9a-fA-F]{1,8})\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|(\w))")
_CATEGORY_NAMES = {
    "letter": "L",
    "alphabetic": "L",
    "uppercase_letter": "Lu",
    "uppercase": "Lu",
    "lowercase_letter": "Ll",
    "lowercase": "Ll",
    "number": "N",
    "decimal_number": "Nd",
    "punctuation": "P",
    "symbol": "S",
    "separator": "Z",
    "mark": "M",
    "other": "C",
    "control": "Cc",
    "white_space": "Z",
}
_SCRIPTS = {
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "han": "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003fffd",
    "hiragana": "\u3041-\u3096\u309d-\u309f",
    "katakana": "\u30a1-\u30fa\u30fd-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "hebrew": "\u0591-\u05f4\ufb1d-\ufb4f",
    "arabic": "\u0600-\u0604\u0606-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "thai": "\u0e01-\u0e3a\u0e40-\u0e5b",
    "hangul": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02b8\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
}


_ASSIGNED = ((0, 0x34000), (0xE0000, 0xE0200))
"""Where characters are; the rest of the code points are unassigned or private."""


class UnsupportedPattern(ValueError):
    """The pattern is wrong, or says something `re` cannot."""


def property_members(name: str) -> str:
    """The members of `\\p{name}`, as they are written inside a class."""
    plain = name.partition("=")[2] or name
    known = _CATEGORY_NAMES.get(plain.lower(), plain)
    if known.lower() in _SCRIPTS:
        return _SCRIPTS[known.lower()]
    return _category_members(known)


def _category_members(category: str) -> str:
    from unicodedata import category as category_of  # few patterns need it

    ranges: list[str] = []
    for first, end in _ASSIGNED if category[:1] != "C" else ((0, 0x110000),):
        start: int | None = None
        for code in range(first, end + 1):
            inside = code < end and category_of(chr(code)).startswith(category)
            if inside and start is None:
                start = code
            elif not inside and start is not None:
                ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
                start = None
    if not ranges or not category:
        raise UnsupportedPattern(f"regex parse error:\nerror: Unicode property not found: {category}")
    return "".join(ranges)


def class_from(pattern: str, start: int) -> tuple[str, int]:
    """The class that opens at `start`, as an expression for one character, and where it ends."""
    parser = _ClassParser(pattern, start)
    return parser.expression(), parser.position


class _ClassParser:
    def __init__(self, pattern: str, start: int) -> None:
        self._pattern = pattern
        self.position = start

    def expression(self) -> str:
        """From an opening to its closing bracket."""
        self.position += 1
        negated = self._take("^")
        left, operator = "", ""
        members: list[str] = []
        nested: list[str] = []
        if self._take("]"):
            members.append(r"\]")
        while not self._take("]"):
            if self.position >= len(self._pattern):
                raise UnsupportedPattern(f"regex parse error:\n    {self._pattern}\nerror: unclosed character class")
            following = self._pattern[self.position : self.position + 2]
            if following in ("&&", "--", "~~"):
                left = _combined(left, operator, _union(members, nested))
                operator, members, nested = following, [], []
                self.position += 2
            elif following.startswith("["):
                self._bracket(members, nested)
            else:
                self._member(members, nested)
        whole = _combined(left, operator, _union(members, nested))
        if not negated:
            return whole
        return f"[^{whole[1:]}" if whole.startswith("[") and not nested and not operator else f"(?!{whole})[\\s\\S]"

    def _take(self, char: str) -> bool:
        taken = self._pattern.startswith(char, self.position)
        self.position += taken
        return taken

    def _bracket(self, members: list[str], nested: list[str]) -> None:
        posix = _POSIX_NAME.match(self._pattern, self.position)
        if posix is None:
            nested.append(self.expression())
            return
        self.position = posix.end()
        if posix[2] not in _POSIX:
            raise UnsupportedPattern(f"regex parse error:\n    {self._pattern}\nerror: unrecognized class {posix[0]}")
        if posix[1]:
            nested.append(f"[^{_POSIX[posix[2]]}]")
        else:
            members.append(_POSIX[posix[2]])

    def _member(self, members: list[str], nested: list[str]) -> None:
        named = _PROPERTY.match(self._pattern, self.position)
        if named:
            self.position = named.end()
            found = property_members(named[3] or named[4])
            if (named[1] == "P") != bool(named[2]):
                nested.append(f"[^{found}]")
            else:
                members.append(found)
            return
        low = self._char()
        is_range = self._pattern.startswith("-", self.position) and self._pattern[self.position + 1 : self.position + 2]
        if len(low) == 1 and is_range not in (False, "", "]", "-", "["):
            self.position += 1
            high = self._char()
            if len(high) != 1 or low > high:
                raise UnsupportedPattern(
                    f"regex parse error:\n    {self._pattern}\nerror: invalid character class range"
                )
            members.append(f"{_escaped(low)}-{_escaped(high)}")
        else:
            members.append(_escaped(low) if len(low) == 1 else low)

    def _char(self) -> str:
        """One character, or an escape such as `\\d` as it is."""
        code = _HEX.match(self._pattern, self.position)
        if code:
            self.position = code.end()
            return chr(int(next(digits for digits in code.groups() if digits), 16))
        char = self._pattern[self.position]
        self.position += 1
        if char != "\\" or self.position >= len(self._pattern):
            return char
        escaped = self._pattern[self.position]
        self.position += 1
        if escaped in "dDsSwW":
            return "\\" + escaped
        return _CONTROLS.get(escaped, escaped)


_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}


def _escaped(char: str) -> str:
    return "\\" + char if char in "\\]^-[&~|" else char


def _union(members: list[str], nested: list[str]) -> str:
    plain = f"[{''.join(members)}]" if members else ""
    if not nested:
        return plain or "(?!)"
    return "(?:" + "|".join([*([plain] if plain else []), *nested]) + ")"


def _combined(left: str, operator: str, right: str) -> str:
    match operator:
        case "&&":
            return f"(?:(?={left}){right})"
        case "--":
            return f"(?:(?!{right}){left})"
        case "~~":
            return f"(?:(?!{right}){left}|(?!{left}){right})"
        case _:
            return right
