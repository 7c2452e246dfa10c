"""Plain scripts: literal simple commands joined by `;`, `&&`, `||`, `|` and line ends, nothing else (R-SHELL-2).

The grammar alone is not trusted: it reads some texts otherwise than bash. So the tokens must also cover the whole text
but for blanks, hold no character that is special to bash, and give the same words as the tree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from goat_mcp.commands.shell.syntax_tree import ScriptTree, bare_text, excerpt, preorder, quoted_text, text_of
from goat_mcp.commands.shell.words import Words, names

_STRUCTURE = frozenset({"program", "list", "pipeline", "command", "command_name", "concatenation"})
_WORD_PARTS = frozenset({"word", "number", "string", "raw_string"})
_SEPARATORS = frozenset({";", "&&", "||", "|", "\n"})
_BARE_WORD = re.compile(r"(?:[\w@%+=:,./^~!#-]|\\[^\n])+", re.DOTALL)
# A `$` before the closing quote or a blank is just that: "foo$".
_QUOTED = re.compile(r'"(?:[^"\\$`]|\\[^\n]|\$(?=[ "]))*"', re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.DOTALL)
_GAP = re.compile(rb"(?:[ \t\n]|\\\n)*")
_RESERVED = names("if then else elif fi case esac for select while until do done in function time coproc { } ! [[ ]] [")
_ASK_FOR = {
    "file_redirect": "a redirection",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "command_substitution": "a command substitution",
    "process_substitution": "a process substitution",
    "simple_expansion": "a variable",
    "expansion": "a variable",
    "arithmetic_expansion": "arithmetic",
    "brace_expression": "a brace expansion",
    "ansi_c_string": "an escape string",
    "translated_string": "a translated string",
    "variable_assignment": "an assignment",
    "variable_assignments": "an assignment",
    "declaration_command": "a declaration",
    "unset_command": "unset",
    "function_definition": "a function",
    "subshell": "a subshell",
    "compound_statement": "a group",
    "if_statement": "a condition",
    "for_statement": "a loop",
    "c_style_for_statement": "a loop",
    "while_statement": "a loop",
    "case_statement": "a case",
    "test_command": "a test",
    "negated_command": "a negation",
    "extglob_pattern": "a wildcard",
    "&": "a background command",
    "|&": "a pipe of the error output",
    "ERROR": "text that is no valid bash",
}


class _NotPlain(Exception):
    """The reason, for a person."""


def plain_commands(tree: ScriptTree) -> tuple[tuple[Words, ...], str]:
    """The commands of a plain script and "", or nothing and the reason why it is not plain."""
    try:
        by_tokens = _commands_by_tokens(tree)
        if not by_tokens:
            raise _NotPlain("no command at all")
        by_tree = [
            [(child.start_byte, child.end_byte) for child in node.children]
            for node in preorder(tree.root)
            if node.type == "command"
        ]
        if [[(word.start, word.end) for word in words] for words in by_tokens] != by_tree:
            raise _NotPlain("text that can be read in two ways")
    except _NotPlain as reason:
        return (), str(reason)
    return tuple(tuple(word.text for word in words) for words in by_tokens), ""


def command_offsets(tree: ScriptTree) -> tuple[int, ...]:
    """Where each command of a plain script begins, in bytes; nothing for any other script."""
    try:
        return tuple(words[0].start for words in _commands_by_tokens(tree))
    except _NotPlain:
        return ()


@dataclass(slots=True)
class _PlacedWord:
    """A word of a plain script and where it stands."""

    text: str
    start: int
    end: int


def _commands_by_tokens(tree: ScriptTree) -> list[list[_PlacedWord]]:
    found: list[list[_PlacedWord]] = []
    words: list[_PlacedWord] = []
    end = 0
    joins = False
    """Whether a word part that follows without a gap belongs to the last word."""
    for token in _tokens(tree.root):
        start, kind = token.start_byte, token.type
        is_part = kind in _WORD_PARTS
        gap = tree.source[end:start]
        separated = _check_gap(gap, joins and is_part)
        end = token.end_byte
        if words and (separated or kind in _SEPARATORS):
            found.append(words)
            words = []
        joins = joins and not gap and is_part
        if is_part:
            text = _checked_part(token, kind, starts_word=not joins, starts_command=not words)
            if joins:
                words[-1].text += text
                words[-1].end = end
            else:
                words.append(_PlacedWord(text, start, end))
            joins = True
        elif kind == "comment":
            _check_comment(token, tree.source)
    _check_gap(tree.source[end:], between_parts=False)
    return [*found, words] if words else found


def _tokens(root: Node) -> list[Node]:
    """The leaves of a plain tree, in order. Raises `_NotPlain` at the first node of another kind."""
    found: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_missing or (node.has_error and node.type == "ERROR"):
            raise _NotPlain(_described(node))
        if node.type in _STRUCTURE:
            waiting.extend(reversed(node.children))
        elif node.type == "redirected_statement":
            waiting.extend(child for child in node.children if "redirect" in child.type)
        elif node.type == "string" and (inner := _expansion_in(node)) is not None:
            raise _NotPlain(_described(inner))
        elif node.type in _WORD_PARTS or node.type in _SEPARATORS or node.type == "comment":
            found.append(node)
        else:
            raise _NotPlain(_described(node))
    return found


def _expansion_in(string: Node) -> Node | None:
    return next((child for child in string.named_children if child.type != "string_content"), None)


def _described(node: Node) -> str:
    what = _ASK_FOR.get(node.type)
    return f"{what} ({excerpt(node)})" if what else f"something other than plain commands ({excerpt(node)})"


def _check_gap(gap: bytes, between_parts: bool) -> bool:
    """Whether a gap between tokens ends a command. Raises `_NotPlain` unless it is blank."""
    if not gap:
        return False
    if not _GAP.fullmatch(gap):
        raise _NotPlain("text that can be read in two ways")
    blanks = gap.replace(b"\\\n", b"")
    if not blanks and between_parts:
        raise _NotPlain("a word that goes on in the next line")
    return b"\n" in blanks


def _checked_part(part: Node, kind: str, *, starts_word: bool, starts_command: bool) -> str:
    """A word part's literal text. Raises `_NotPlain` if bash could make something else of it."""
    source = text_of(part)
    if kind == "raw_string":
        if len(source) < 2 or source[0] != "'" or source.find("'", 1) != len(source) - 1:
            raise _NotPlain("text that can be read in two ways")
        return source[1:-1]
    if kind == "string":
        if not _QUOTED.fullmatch(source):
            raise _NotPlain(f"an expansion ({excerpt(part)})")
        return quoted_text(source)
    _check_bare(part, source, starts_word)
    if starts_command and starts_word:
        if source in _RESERVED:
            raise _NotPlain(f"the reserved word {source}")
        if _ASSIGNMENT.match(source):
            raise _NotPlain(f"an assignment ({excerpt(part)})")
    return bare_text(source)


def _check_bare(part: Node, source: str, starts_word: bool) -> None:
    if not _BARE_WORD.fullmatch(source):
        if any(character in source for character in "*?["):
            raise _NotPlain(f"a wildcard ({excerpt(part)})")
        raise _NotPlain(f"an expansion ({excerpt(part)})")
    if starts_word and source.startswith("#"):
        raise _NotPlain("text that can be read in two ways")
    # Only HEAD~1 and its like are no home directory.
    if "~" in source and re.search(r"(?:^|[:=/,~!#-])~", source):
        raise _NotPlain(f"a home directory ({excerpt(part)})")
    if starts_word and source.startswith("!"):
        raise _NotPlain("a negation (!)")


def _check_comment(comment: Node, source: bytes) -> None:
    before = source[comment.start_byte - 1 : comment.start_byte] if comment.start_byte else b"\n"
    if before not in b" \t\n;" or b"\n" in (comment.text or b"") or not source[comment.start_byte :].startswith(b"#"):
        raise _NotPlain("text that can be read in two ways")
