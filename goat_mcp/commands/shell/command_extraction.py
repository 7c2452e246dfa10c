"""Every command of a script that a deny or ask rule must look at, and why there may be more (R-SHELL-5).

Best effort: the text does not tell what a script file, an interpreter or a build tool runs, and such commands do not
count as hidden. A sourced file counts as a script file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from goat_mcp.commands.shell.mentions import LISTS_FOLDERS, Mentions, OwnWords
from goat_mcp.commands.shell.read_only import takes_stdin_as_data
from goat_mcp.commands.shell.redirections import (
    REPEATING,
    Assigned,
    Opened,
    assigned_by,
    is_piped,
    is_redirection,
    is_repeated,
    opened_by,
    values_of,
    words_after,
)
from goat_mcp.commands.shell.running_programs import CONTAINERS, SHELLS, WRAPPERS
from goat_mcp.commands.shell.syntax_tree import ScriptTree, excerpt, parse, preorder, text_of, word_of
from goat_mcp.commands.shell.words import MAX_COMMANDS, MAX_SCRIPT_BYTES, Word, Words, bare_name
from goat_mcp.commands.shell.wrapper_stripping import strip_wrappers
from goat_mcp.commands.shell.wrappers import InnerCommands, add_assignment

_MAX_WORDS = 20_000
_MAX_INNER_CHARS = 4 * MAX_SCRIPT_BYTES
_BACKQUOTE = re.compile(r"(?<!\\)(?:\\\\)*`")
_BACKSLASH_IN_BACKQUOTES = re.compile(r"\\([`\\$\"])")
_ARITHMETIC = re.compile(r"\(\(|\$\[|\[\[|\b(?:let|declare|typeset|local|test)\b|\[\s|\$\{[^}]*[:\[]")
_RUN_BY_ARITHMETIC = re.compile(r"\[[^\]]*(?:\$\(|`)")
"""A subscript with a substitution, which bash runs if it takes a variable's text for a number."""
_SUBSTITUTION = re.compile(r"(?<!\\)(?:\\\\)*\$\(")
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")
_ESCAPED_IN_HEREDOC = re.compile(r"\\([\\$`\n])")
_QUOTES = "'\"\\"
_TEXTS = ("word", "regex", "heredoc_body", "heredoc_content", "extglob_pattern")
_RUNS_TEXT = SHELLS | WRAPPERS.keys() | {"eval", "trap", "alias"}
_PRINTING = ("echo", "printf")
_NO_WORDS = ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect")
_ARGUMENTS_OF = ("declaration_command", "unset_command", "test_command")


@dataclass(frozen=True)
class _Text:
    """Text that is a script again. `stdin` is what its shells may read from outside of it; `streams`: they may read
    the output of other commands."""

    text: str
    stdin: tuple[Word, ...] = ()
    streams: bool = False


@dataclass(frozen=True)
class ExtractedCommand:
    """A command for rules about files: with expansions in its words, and without the words of a command or a text that
    it runs, which is a command of its own here.

    `piped`: it reads the output of others. `fed`: it gets more words that are not in the script (from `xargs`).
    `repeats`: it may run more than once. `inner`: it stands in text that is a script again.
    """

    name: str
    program: Word
    words: tuple[Word, ...]
    piped: bool = False
    fed: bool = False
    repeats: bool = False
    inner: bool = False


@dataclass
class _Search:
    """The findings so far."""

    found_commands: list[Words] = field(default_factory=list[Words])
    in_full: list[ExtractedCommand] = field(default_factory=list[ExtractedCommand])
    opened: list[Opened] = field(default_factory=list[Opened])
    assigned: list[Assigned] = field(default_factory=list[Assigned])
    has_loops: bool = False
    is_inner: bool = False
    own_words: list[OwnWords] = field(default_factory=list[OwnWords])
    exported: list[str] = field(default_factory=list[str])
    assigned_texts: list[str] = field(default_factory=list[str])
    fed: list[Word] = field(default_factory=list[Word])
    texts: list[_Text] = field(default_factory=list[_Text])
    command_count: int = 0
    word_count: int = 0
    hidden: str = ""

    def hide(self, reason: str) -> None:
        """More may run than was found."""
        self.hidden = self.hidden or reason


@dataclass(frozen=True)
class ExtractedCommands:
    """`commands`, each with its program's bare name first; `hidden` is why there may be more.

    `in_full` are the same commands for rules about files; `opened` are the files of redirections, `assigned` the values
    of variables. `fed` is text on the standard input of programs that may take it for more than data. `mentions` are
    words that others may run.
    """

    commands: tuple[Words, ...] = ()
    hidden: str = ""
    in_full: tuple[ExtractedCommand, ...] = ()
    opened: tuple[Opened, ...] = ()
    assigned: tuple[Assigned, ...] = ()
    fed: tuple[Word, ...] = ()
    has_loops: bool = False
    mentions: Mentions = field(default_factory=Mentions)


def extract_commands(text: str, tree: ScriptTree, plain: Sequence[Words]) -> ExtractedCommands:
    """The commands of a script. `plain`: those of a plain script, for which its tree need not be searched."""
    search = _Search()
    whole = _Text(text)
    if plain and not ("|" in text and any(words[0] in _PRINTING for words in plain)):
        whole = replace(whole, streams="|" in text)
        for words, is_fed in zip(plain, _piped_of(tree), strict=False):
            _search_command(search, [Word(word, literal=True) for word in words], whole, piped=is_fed)
    else:
        _search_tree(search, tree, whole)
    if "\\\n" in text and not plain:
        # Our grammar ends a word at a line end at which bash goes on.
        search.texts.append(_Text(text.replace("\\\n", "")))
    searched = {whole}
    chars = 0
    search.is_inner = True
    while search.texts and not search.hidden:
        inner = search.texts.pop(0)
        if inner in searched or not inner.text.strip():
            continue
        searched.add(inner)
        chars += len(inner.text)
        inner_tree = parse(inner.text) if chars <= _MAX_INNER_CHARS else None
        if inner_tree is None:
            search.hide("too much text inside the script that is a script again")
            break
        _search_tree(search, inner_tree, inner)
    mentions = Mentions(
        tuple(dict.fromkeys(search.own_words)),
        tuple(dict.fromkeys(search.exported)),
        tuple(dict.fromkeys(search.assigned_texts)),
    )
    return ExtractedCommands(
        tuple(dict.fromkeys(search.found_commands)),
        search.hidden,
        tuple(dict.fromkeys(search.in_full)),
        tuple(dict.fromkeys(search.opened)),
        tuple(dict.fromkeys(search.assigned)),
        tuple(dict.fromkeys(search.fed)),
        search.has_loops,
        mentions,
    )


def _piped_of(tree: ScriptTree) -> list[bool]:
    return [is_piped(node) for node in preorder(tree.root) if node.type == "command"]


def _search_tree(search: _Search, tree: ScriptTree, around: _Text) -> None:
    commands: list[list[Word]] = []
    nodes: list[Node] = []
    texts: list[str] = []
    stdin = list(around.stdin)
    # A coprocess reads the output of others, too.
    streams = around.streams or "coproc" in around.text
    counts = _ARITHMETIC.search(around.text) is not None
    if tree.root.has_error:
        search.hide("text that is no valid bash")
    for node in preorder(tree.root):
        if node.type == "command":
            search.command_count += 1
            if words := _words_of(node, tree.source):
                commands.append(words)
                nodes.append(node)
                if words[0].text in _PRINTING:
                    _add_stdin(search, node, tree, words[1:])
        elif node.type in _ARGUMENTS_OF:
            # `export`, `unset`, `[`: commands to bash, special to the grammar.
            search.command_count += 1
            commands.append([Word(text_of(node.children[0]), literal=True), *map(word_of, node.children[1:])])
            nodes.append(node)
        elif node.type == "variable_assignment":
            texts.extend(_run_by_assignment(search, node))
        elif node.type == "herestring_redirect":
            stdin.extend(word_of(child) for child in node.named_children[-1:])
            search.assigned_texts.append(stdin[-1].text)  # for `read x`
            _add_stdin(search, node, tree, stdin[-1:])
        elif node.type == "heredoc_redirect":
            stdin.append(_heredoc(node))
            _add_stdin(search, node, tree, stdin[-1:])
        elif node.type in ("pipeline", "process_substitution") or _is_from_network(node):
            streams = True
        elif node.type == "command_substitution" and node.children[0].type == "`":
            # In backquotes bash takes a backslash away first, so that others may stand inside.
            if "\\" in (text := text_of(node)[1:-1]):
                texts.append(_BACKSLASH_IN_BACKQUOTES.sub(r"\1", text))
        elif node.type == "expansion" and "@P}" in text_of(node):
            search.hide(f"a variable that bash expands again ({excerpt(node)})")
        elif node.type == "for_statement":
            search.assigned_texts.extend(value.text for value in values_of(node))
        search.has_loops = search.has_loops or node.type in REPEATING
        search.assigned.extend(assigned_by(node))
        if is_redirection(node):
            search.opened.extend(opened_by(node, tree))
            if commands:
                # They belong to the command: `git >log push` is a push.
                commands[-1].extend(map(word_of, words_after(node)))
        if counts and node.type in ("raw_string", "word", "ansi_c_string", "string") and _is_run_as_a_number(node):
            search.hide(f"text that bash would run where it counts ({excerpt(node)})")
        if node.type in _TEXTS and node.child_count == 0:
            texts.extend(_run_in_text(node))
        elif node.type == "heredoc_body" and not _is_quoted_body(node):
            # Our grammar has no node for the text before the first expansion.
            texts.extend(_in_backquotes(text_of(node)))
        if search.command_count > MAX_COMMANDS:
            search.hide(f"more than {MAX_COMMANDS} commands")
            return
    here = _Text("", tuple(dict.fromkeys(stdin)), streams)
    search.texts.extend(replace(here, text=text) for text in texts)
    for words, node in zip(commands, nodes, strict=True):
        _search_command(search, words, here, piped=is_piped(node), repeats=search.has_loops and is_repeated(node))


def _words_of(command: Node, source: bytes) -> list[Word]:
    words: list[Word] = []
    end = -1
    for child in command.children:
        if child.type in _NO_WORDS or _is_descriptor(child, source):
            continue
        word = word_of(child)
        if child.start_byte == end:
            # Our grammar makes two words of `$x/$y/`.
            word = Word(words.pop().text + word.text, literal=False)
        words.append(word)
        end = child.end_byte
    return words


def _add_stdin(search: _Search, node: Node, tree: ScriptTree, words: Sequence[Word]) -> None:
    """Text on standard input counts as words of its reader: `python3 <<E` as `python3 -c`."""
    around = [node.parent] if node.type.endswith("_redirect") else []
    above = node.parent
    while above is not None and above.type not in ("command_substitution", "process_substitution"):
        if above.type == "pipeline" or (above.type == "redirected_statement" and around):
            around = [above]
        above = above.parent
    takers = [
        _words_of(one, tree.source)
        for top in around
        if top is not None
        for one in preorder(top)
        if one.type == "command"
    ]
    if not all(_takes_data(taker) for taker in takers if taker):
        search.fed.extend(words)
        search.exported.extend(word.text for word in words)


def _takes_data(words: list[Word]) -> bool:
    name, inner = bare_name(words[0].text), strip_wrappers(words, fed=False)
    if name in SHELLS:
        return inner.reads_stdin or not inner.texts  # it is searched as a script, or a file is run
    if inner.commands:
        return all(_takes_data(command) for command in inner.commands)
    return takes_stdin_as_data(name, [word.text for word in words[1:]])


def _is_descriptor(node: Node, source: bytes) -> bool:
    """The `0` of `sh 0<<< text`, which our grammar takes for an argument."""
    return source[node.end_byte : node.end_byte + 1] in (b"<", b">") and text_of(node).isdecimal()


def _run_by_assignment(search: _Search, node: Node) -> list[str]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    inner = InnerCommands()
    if name is not None and value is not None:
        add_assignment(inner, text_of(name), word_of(value))
        if not LISTS_FOLDERS.fullmatch(text_of(name)):
            # Without a command behind it, it is a variable of the shell alone.
            is_exported = node.parent is not None and node.parent.type in ("command", "declaration_command")
            (search.exported if is_exported else search.assigned_texts).extend(word.text for word in values_of(node))
        if inner.hidden:
            search.hide(inner.hidden)
    return inner.texts


def _is_from_network(node: Node) -> bool:
    return node.type == "file_redirect" and _NETWORK.search(text_of(node)) is not None


def _is_run_as_a_number(node: Node) -> bool:
    word = word_of(node)
    return word.literal and _RUN_BY_ARITHMETIC.search(word.text) is not None


def _run_in_text(node: Node) -> list[str]:
    """Substitutions in nodes that our grammar takes for mere text, as in a here-document or a `${x:-default}`."""
    text = text_of(node)
    if "`" not in text and "$(" not in text:
        return []
    if node.type == "heredoc_body" and _is_quoted_body(node):
        return []
    return [*_in_backquotes(text), *(text[match.end() :].rpartition(")")[0] for match in _SUBSTITUTION.finditer(text))]


def _in_backquotes(text: str) -> list[str]:
    return [part.replace("\\`", "`") for part in _BACKQUOTE.split(text)[1::2]]


def _heredoc(node: Node) -> Word:
    body = next((child for child in node.children if child.type == "heredoc_body"), None)
    if body is None:
        return Word("", literal=True)
    text = text_of(body)
    if not _is_quoted(node):
        text = _ESCAPED_IN_HEREDOC.sub(lambda match: match[1].strip("\n"), text)
    return Word(text, literal=all(child.type == "heredoc_content" for child in body.named_children))


def _is_quoted_body(body: Node) -> bool:
    return body.parent is not None and _is_quoted(body.parent)


def _is_quoted(heredoc: Node) -> bool:
    """Whether bash leaves the body of a here-document as it is."""
    start = next((text_of(child) for child in heredoc.children if child.type == "heredoc_start"), "")
    return any(character in start for character in _QUOTES)


def _words_for_file_rules(name: str, words: list[Word], inner: InnerCommands) -> list[Word]:
    """A command's words that may name files: in doubt also those of a command that it runs."""
    if name in CONTAINERS or name in ("find", "script", "flock", "logsave"):
        # It is uncertain which of their words are files and which are the command.
        return words[1:]
    begins = [len(words) - len(command) for command in inner.commands]
    begins = [at for at, command in zip(begins, inner.commands, strict=True) if at > 0 and words[at:] == command]
    own = words[1 : min(begins, default=len(words))]
    return [word for word in own if word.text not in inner.texts] if name in _RUNS_TEXT else own


def _search_command(search: _Search, first: list[Word], here: _Text, *, piped: bool, repeats: bool = False) -> None:
    """A command and all that it runs in turn. `here` has the standard input of its shells."""
    waiting = [(first, False)]
    while waiting:
        words, fed = waiting.pop()
        search.word_count += len(words)
        if search.word_count > _MAX_WORDS:
            search.hide("too many commands inside commands")
            return
        name = bare_name(words[0].text)
        if not words[0].literal:
            search.hide(f"a command name that is not a literal word ({words[0].text[:40]})")
        search.found_commands.append((name, *(word.text for word in words[1:])))
        inner = strip_wrappers(words, fed=fed)
        search.own_words.append(_words_for_mentions(search.found_commands[-1], inner))
        own = tuple(_words_for_file_rules(name, words, inner))
        search.in_full.append(ExtractedCommand(name, words[0], own, piped or fed, fed, repeats, search.is_inner))
        if inner.hidden:
            search.hide(inner.hidden)
        if inner.reads_stdin:
            if here.streams:
                search.hide("a shell that reads what other commands print")
            for text in here.stdin:
                if not text.literal:
                    search.hide("a shell that reads text which is not literal")
                search.texts.append(replace(here, text=text.text))
        if any(blank in words[0].text for blank in " \t\n"):
            # No program's name: the words before it may have another meaning.
            search.texts.append(replace(here, text=words[0].text))
        search.texts.extend(replace(here, text=text) for text in inner.texts)
        waiting.extend((command, fed or name in ("xargs", "parallel")) for command in reversed(inner.commands))


def _words_for_mentions(words: Words, inner: InnerCommands) -> OwnWords:
    """A command's words that another program may take for a command: without those of commands that it certainly runs,
    which are searched by themselves."""
    end = len(words)
    for command in inner.commands:
        for texts in (tuple(word.text for word in command), tuple(word.text for word in command[1:])):
            if texts and words[-len(texts) :] == texts:
                end = min(end, len(words) - len(texts))
    joined = " ".join(words)
    for text in inner.texts:
        if text and joined.endswith(f" {text}"):
            # Of `eval echo a` all words are the text.
            at, chars = len(words), -1
            while chars < len(text):
                at -= 1
                chars += len(words[at]) + 1
            end = min(end, at) if chars == len(text) else end
    split = [" ".join(word.text for word in command[1:]) for command in inner.commands]  # `env -S 'ls a'`
    kept = (word for word in words[1 : max(end, 1)] if word not in inner.texts and word not in split)
    return OwnWords((words[0], *kept), wraps=bool(inner.commands or inner.texts))
