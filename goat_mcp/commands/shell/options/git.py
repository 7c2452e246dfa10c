"""git: the options of its reading verbs, and what no verb may be given.

A rule that covers git as a whole (`git *`) covers the reading verbs only; `git commit *` spells its verb out, and then
covers what the verb does, hooks included, but for options that name programs, directories or configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from goat_mcp.commands.shell.options.table import Arguments, OptionTable, values_among
from goat_mcp.commands.shell.words import bare_name, names

_GLOBAL_FLAGS = frozenset(
    {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs"}
    | {"--icase-pathspecs", "--no-replace-objects", "--no-lazy-fetch", "--version"}
)
_NEVER_VERBS = names(
    "config bisect submodule filter-branch filter-repo difftool mergetool daemon instaweb gui citool gitk hook "
    "credential send-email upload-pack receive-pack upload-archive shell merge-index merge-one-file remote-ext "
    "remote-fd fast-import http-backend p4 svn cvsserver archimport maintenance help web--browse"
)
"""Verbs that exist to run other programs or to choose which run; only an exact rule covers them."""
_NEVER_OPTIONS = names(
    "--upload-pack --receive-pack --exec --exec-path --config --config-env --template --extcmd --open-files-in-pager "
    "--output --output-directory --ext-diff --textconv --filters --tool --git-dir --work-tree --namespace --help "
    "--separate-git-dir --sendmail-cmd --recurse-submodules --strategy "
    "--unsafe-paths --directory --prefix --interactive --edit-todo --index-output"
)
"""Refused after any verb, abbreviated too: they name programs, directories or configuration."""
_NEVER_LETTERS: Mapping[str, str] = {
    # A strategy is a program: git-merge-STRATEGY.
    "merge": "s",
    "pull": "s",
    "rebase": "xsi",
    "clone": "uc",
    "archive": "o",
    "format-patch": "o",
}
_WRITES_WHEN_NAMED = frozenset({"stash", "worktree"})
_ALSO_READ = frozenset(
    {"annotate", "diff-files", "diff-index", "diff-tree", "range-diff", "cherry", "fsck", "patch-id"}
)
"""They change nothing, but a rule must name them: we have no table of their options."""
_READS_IF_FIRST: Mapping[str, frozenset[str]] = {
    "stash": frozenset({"list", "show"}),
    "worktree": frozenset({"list"}),
    "remote": frozenset({"", "-v", "--verbose", "get-url"}),
}
"""Verbs that can do both, and the words after them that say that they read."""

_DIFF_LONG = (
    "patch no-patch unified raw patch-with-raw indent-heuristic no-indent-heuristic minimal patience histogram stat "
    "compact-summary numstat shortstat dirstat cumulative summary patch-with-stat name-only name-status "
    "color no-color color-moved no-color-moved color-words word-diff no-renames rename-empty check full-index binary "
    "abbrev find-renames find-copies find-copies-harder break-rewrites irreversible-delete pickaxe-all pickaxe-regex "
    "relative no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space "
    "ignore-blank-lines function-context exit-code quiet no-ext-diff no-textconv no-prefix "
    "default-prefix cached staged merge-base ita-invisible-in-index"
)
_DIFF_VALUED = (
    "diff-algorithm stat-width stat-name-width stat-count word-diff-regex diff-filter inter-hunk-context src-prefix "
    "dst-prefix line-prefix ws-error-highlight anchored skip-to rotate-to find-object max-depth"
)
_DIFF_FLAGS = "puswabWRzt"
_LOG_LONG = (
    f"{_DIFF_LONG} oneline graph decorate no-decorate source all branches tags remotes reflog walk-reflogs "
    "first-parent merges no-merges reverse date-order author-date-order topo-order follow full-diff log-size "
    "abbrev-commit no-abbrev-commit left-right left-only right-only cherry cherry-mark cherry-pick boundary "
    "simplify-merges simplify-by-decoration full-history dense sparse ancestry-path show-pulls parents children "
    "no-notes notes show-notes relative-date not stdin-no ignore-missing invert-grep all-match regexp-ignore-case "
    "extended-regexp basic-regexp fixed-strings perl-regexp clear-decorations no-expand-tabs expand-tabs no-mailmap "
    "mailmap use-mailmap use-bitmap-index pretty format no-diff-merges cc combined-all-paths no-graph"
)
_LOG_VALUED = (
    f"{_DIFF_VALUED} max-count skip since after until before author committer grep date encoding glob exclude "
    "decorate-refs decorate-refs-exclude min-parents max-parents since-as-filter grep-reflog diff-merges"
)
_SHOWS_MERGES = values_among(
    # `remerge` merges again, with drivers of the repository.
    {"--diff-merges": names("off none on m first-parent 1 separate combined c dense-combined cc")}
)
_LOG = OptionTable(f"{_DIFF_FLAGS}gmciEFP", "nSGL", "UMCBXl", _LOG_LONG, _LOG_VALUED, numbers=True, check=_SHOWS_MERGES)
_REF_LIST_LONG = (
    "all remotes list show-current column no-column ignore-case color no-color omit-empty no-abbrev abbrev merged "
    "no-merged"
)
_REF_LIST_VALUED = "contains no-contains points-at sort format"


def _only_when_listing(arguments: Arguments) -> str:
    asks = {"--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"}
    if arguments.operands and not any(name in asks for name, _ in arguments.given):
        return f"{arguments.operands[0]} would be created or changed"
    return ""


def _only_words(*allowed: str) -> Callable[[Arguments], str]:
    def check(arguments: Arguments) -> str:
        # The very first word: to `git stash -- list` it is a path.
        first = arguments.first
        return "" if first in allowed else f"{first or 'no word after it'} may change the repository"

    return check


_READING: Mapping[str, OptionTable] = {
    "status": OptionTable(
        "sbvz",
        "",
        "uM",
        "short branch show-stash porcelain long verbose untracked-files ignored column no-column ahead-behind "
        "no-ahead-behind renames no-renames find-renames",
    ),
    "log": _LOG,
    "show": _LOG,
    "whatchanged": _LOG,
    "diff": OptionTable(_DIFF_FLAGS, "SG", "UMCBXDl", _DIFF_LONG, _DIFF_VALUED, numbers=True),
    "shortlog": OptionTable(
        "nsec", "", "w", "numbered summary email committer all no-merges merges", "since until author"
    ),
    "blame": OptionTable(
        "bltfnsewpck",
        "L",
        "MC",
        "root show-stats porcelain line-porcelain incremental show-email show-name show-number abbrev minimal "
        "color-lines color-by-age first-parent",
        "date since ignore-rev",
    ),
    "branch": OptionTable("arvil", "", "", f"{_REF_LIST_LONG} verbose", _REF_LIST_VALUED, check=_only_when_listing),
    "tag": OptionTable("il", "", "n", _REF_LIST_LONG, _REF_LIST_VALUED, check=_only_when_listing),
    "remote": OptionTable(
        "v",
        "",
        "",
        "verbose all push",
        check=lambda arguments: (
            ""
            if arguments.operands[:1] in ((), ("get-url",))
            else f"{arguments.operands[0]} may change remotes or reach one"
        ),
    ),
    "stash": OptionTable("", "", "", "oneline stat", check=_only_words("list")),
    "worktree": OptionTable("vz", "", "", "verbose porcelain", check=_only_words("list")),
    "reflog": OptionTable(
        "",
        "n",
        "",
        "oneline all no-abbrev date",
        "max-count date",
        numbers=True,
        check=lambda arguments: (
            ""
            if arguments.operands[:1] in ((), ("show",), ("HEAD",))
            else f"{arguments.operands[0]} may change the reflog"
        ),
    ),
    "rev-parse": OptionTable(
        "q",
        "",
        "",
        "show-toplevel abbrev-ref short verify quiet git-dir absolute-git-dir git-common-dir is-inside-work-tree "
        "is-inside-git-dir is-bare-repository is-shallow-repository show-prefix show-cdup symbolic symbolic-full-name "
        "all branches tags remotes show-superproject-working-tree show-object-format",
    ),
    "rev-list": OptionTable("", "n", "", f"{_LOG_LONG} count objects", _LOG_VALUED, numbers=True, check=_SHOWS_MERGES),
    "ls-files": OptionTable(
        "cdmoisukvtzf",
        "x",
        "",
        "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol deduplicate "
        "exclude-standard error-unmatch full-name abbrev",
        "exclude format",
    ),
    "ls-tree": OptionTable(
        "drtlz", "", "", "long name-only name-status object-only full-name full-tree abbrev", "format"
    ),
    "cat-file": OptionTable("tsep"),
    "describe": OptionTable(
        "",
        "",
        "",
        "all tags long always contains exact-match first-parent dirty broken abbrev",
        "match exclude candidates",
    ),
    "show-ref": OptionTable("qds", "", "", "heads branches tags head verify quiet dereference hash abbrev"),
    "for-each-ref": OptionTable(
        "", "", "", "merged no-merged ignore-case omit-empty", "count sort format points-at contains no-contains"
    ),
    "name-rev": OptionTable("", "", "", "tags all name-only always no-undefined", "refs exclude"),
    "merge-base": OptionTable("a", "", "", "all octopus independent is-ancestor fork-point"),
    "count-objects": OptionTable("vH", "", "", "verbose human-readable"),
    "check-ignore": OptionTable("qvnz", "", "", "quiet verbose non-matching no-index"),
    "check-attr": OptionTable("az", "", "", "all cached"),
    "grep": OptionTable(
        "aiIwvhHEGFPnlLzopqcW",
        "efABCm",
        "",
        "cached untracked no-index no-exclude-standard exclude-standard text ignore-case word-regexp invert-match "
        "full-name extended-regexp basic-regexp fixed-strings perl-regexp line-number column files-with-matches "
        "name-only files-without-match null only-matching count color no-color break heading show-function "
        "function-context all-match quiet no-textconv and or not recursive no-recursive",
        "max-depth max-count context after-context before-context threads",
    ),
    "version": OptionTable("", "", "", "build-options"),
}


def git_verb(words: Sequence[str]) -> str:
    """The verb of a git command after harmless global options; empty if there is none, or after other options."""
    for word in words[1:]:
        if not word.startswith("-"):
            return word
        if word not in _GLOBAL_FLAGS:
            return ""
    return ""


def only_reads(words: Sequence[str]) -> bool:
    """Whether a git command changes nothing. Of a verb that can do both, its next words tell."""
    if bare_name(words[0]) != "git":
        return False
    verb = git_verb(words)
    table = _READING.get(verb)
    if table is None:
        return verb in _ALSO_READ
    after = words[list(words).index(verb) + 1 :]
    if verb == "reflog":
        return after[:1] not in (("expire",), ("delete",), ("drop",), ("write",))
    if (reads := _READS_IF_FIRST.get(verb)) is not None:
        return (after[0] if after else "") in reads
    return verb not in ("branch", "tag") or not table.problem(after)


def git_problem(words: Sequence[str], named_words: int) -> str:
    """Empty, or why a wildcard rule does not cover this git command."""
    verb = git_verb(words)
    if not verb:
        bad = next((word for word in words[1:] if word not in _GLOBAL_FLAGS), "")
        return f"{bad.partition('=')[0]} is not an option known to be harmless" if bad else ""
    at = list(words).index(verb)
    after = words[at + 1 :]
    is_named = named_words > at
    table = _READING.get(verb)
    if table is not None and not (is_named and verb in _WRITES_WHEN_NAMED):
        problem = table.problem(after)
        return f"{verb}: {problem}" if problem else ""
    if verb in _NEVER_VERBS or not verb.replace("-", "").isalnum():
        return f"{verb} runs or chooses other programs; only a rule that spells the whole command covers it"
    if not is_named:
        return f"{verb} is no verb that only reads; a rule must spell it out (git {verb} *)"
    return _problem_of_writing(verb, after)


def _problem_of_writing(verb: str, after: Sequence[str]) -> str:
    """The problem of a verb that changes things and that the rule has spelled out."""
    for word in after:
        name = word.partition("=")[0]
        letters = word[1:] if word.startswith("-") and not word.startswith("--") else ""
        if (len(name) > 2 and any(never.startswith(name) for never in _NEVER_OPTIONS)) or set(letters) & set(
            _NEVER_LETTERS.get(verb, "")
        ):
            return f"{verb}: {name} goes beyond what {verb} is for"
        if "::" in word:
            return f"{verb}: {word} names a program that speaks to the remote"
    return ""
