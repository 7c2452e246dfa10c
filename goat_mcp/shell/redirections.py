"""What redirections open, and the words of a command that our grammar counts to a redirection before them."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from goat_mcp.shell.file_use import FileUse
from goat_mcp.shell.tree import ScriptTree
from goat_mcp.shell.words import word_of

_ASSIGNED = ("variable_assignment", "for_statement")


def opened_by(redirect: Node, tree: ScriptTree) -> Iterator[FileUse]:
    """The file of `< f`, `> f`, `<> f`; nothing for `2>&1`."""
    target = redirect.child_by_field_name("destination")
    if target is None or target.type == "number":
        return
    operator = tree.source[redirect.start_byte : target.start_byte].decode("utf-8", "replace")
    text = word_of(target).text
    if text != "-":
        yield FileUse(text, writes=">" in operator)


def words_after(redirect: Node) -> list[Node]:
    """`push` of `git >log push`: words of the command, which our grammar takes for more targets."""
    if redirect.type == "heredoc_redirect":
        return redirect.children_by_field_name("argument")
    return redirect.children_by_field_name("destination")[1:]


def named_by_assignment(node: Node) -> Iterator[FileUse]:
    """What a variable is given, by an assignment or a loop: a command may name it by that."""
    if node.type not in _ASSIGNED:
        return
    for value in node.children_by_field_name("value"):
        for one in value.named_children if value.type == "array" else (value,):
            yield FileUse(word_of(one).text)


def is_piped(command: Node) -> bool:
    """Whether a command reads what another one prints."""
    above, node = command.parent, command
    while above is not None and above.type != "command_substitution":
        if above.type == "pipeline" and above.named_children[0] != node:
            return True
        above, node = above.parent, above
    return False


def is_redirection(node: Node) -> bool:
    return node.type in ("file_redirect", "heredoc_redirect")
