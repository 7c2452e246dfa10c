"""Programs with verbs, most of which only look: containers, clusters, forges, package managers. A rule for the program
alone covers the verbs that look; others it must spell out, and then it covers them with plain words only."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from goat_mcp.commands.shell.options.table import OptionTable
from goat_mcp.commands.shell.words import names

RUNNING_VERBS = names(
    "run exec x dlx shell ssh eval execute sh bash repl console call invoke spawn script run-script source attach "
    "debug interactive plugin plugins extension"
)
"""What programs call it when they run another one."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.-]*\+?=")


def unknown_problem(words: Sequence[str], named_words: int, spelled: Collection[str] = ()) -> str:
    """Empty, or which word goes beyond what the rule spells, and the rule that would cover it.

    `named_words`: how many of the first words the rule spells out; `spelled`: the words it spells out elsewhere.
    """
    if len(words) == 2 and words[1] in ("--version", "--help"):
        return ""
    beyond = [
        index
        for index, word in enumerate(words)
        if index >= max(named_words, 1) and word not in spelled and _is_no_plain_word(word)
    ]
    if not beyond:
        return ""
    rule = shlex.join(words[: beyond[-1] + 1])
    return f"{words[beyond[0]]} is not known to be harmless; a rule that spells it out covers it: Bash({rule} *)"


def _is_no_plain_word(word: str) -> bool:
    return (
        (word.startswith("-") and word != "-")
        or word.startswith("@")
        or _ASSIGNMENT.match(word) is not None
        # Maven and its like: exec:java.
        or word.partition(":")[0] in RUNNING_VERBS
    )


@dataclass(frozen=True)
class VerbTool:
    """`before`: options before the verb; `looking`: the verbs, of one word or two, that change nothing;
    `running`: those that run what their arguments say; `named`: those that do so, but no more than the project says if
    a rule spells them out."""

    before: OptionTable
    looking: Mapping[tuple[str, ...], OptionTable]
    running: frozenset[str] = field(default_factory=frozenset[str])
    named: Mapping[tuple[str, ...], OptionTable] = field(default_factory=dict[tuple[str, ...], OptionTable])


def _verbs(names: str, table: OptionTable) -> dict[tuple[str, ...], OptionTable]:
    return {tuple(name.split()): table for name in names.split(",")}


_CONTAINER_LIST = OptionTable(
    "aqns", "f", "", "all quiet no-trunc size latest digests", "filter format last"
)  # fmt: skip
_COMPOSE = "build no-build no-deps quiet-pull quiet no-color no-log-prefix"
_CONTAINERS = VerbTool(
    OptionTable("D", "c", "", "debug version help", "context log-level", own_first=True),
    {
        **_verbs("ps,images,container ls,container list,image ls,volume ls,network ls,compose ls", _CONTAINER_LIST),
        **_verbs(
            "logs,container logs,compose logs",
            OptionTable("ft", "n", "", "follow timestamps details no-color no-log-prefix", "tail since until"),
        ),
        **_verbs("inspect,container inspect,image inspect", OptionTable("s", "f", "", "size", "format type")),
        **_verbs("version,info,top,port,diff,compose version", OptionTable("", "f", "", "", "format")),
        ("compose", "ps"): OptionTable("aq", "", "", "all quiet services", "format status"),
        ("history",): OptionTable("Hq", "", "", "human no-trunc quiet", "format"),
        ("stats",): OptionTable("a", "", "", "all no-stream no-trunc", "format"),
    },
    frozenset({"run", "exec", "compose", "buildx", "container", "create", "cp", "debug", "plugin", "sandbox", "model"}),
    {
        ("compose", "up"): OptionTable(
            "dVw", "t", "", f"{_COMPOSE} detach force-recreate no-recreate remove-orphans wait watch", "timeout"
        ),
        ("compose", "down"): OptionTable("", "t", "", "remove-orphans", "timeout"),
        ("compose", "build"): OptionTable("q", "", "", f"{_COMPOSE} pull no-cache"),
        **_verbs(
            "compose start,compose stop,compose restart,compose pull", OptionTable("q", "t", "", "quiet", "timeout")
        ),
    },
)
_CLUSTER_OPTIONS = "namespace context cluster output selector field-selector sort-by chunk-size"
_CLUSTER_GET = OptionTable(
    "Aw", "nolL", "", "all-namespaces watch no-headers show-labels show-kind ignore-not-found show-events",
    _CLUSTER_OPTIONS,
)  # fmt: skip
_CLUSTER = VerbTool(
    OptionTable("", "n", "v", "help", "namespace context cluster request-timeout", own_first=True),
    {
        **_verbs("get,describe,top,api-resources,api-versions,explain,events", _CLUSTER_GET),
        **_verbs("rollout status,rollout history,auth can-i,auth whoami", _CLUSTER_GET),
        ("logs",): OptionTable(
            "fpA",
            "ncl",
            "",
            "follow previous timestamps all-containers prefix ignore-errors all-pods",
            f"{_CLUSTER_OPTIONS} container tail since since-time limit-bytes max-log-requests",
        ),
        **_verbs("version,cluster-info", OptionTable("", "o", "", "client short", "output")),
        **_verbs("config current-context,config get-contexts", OptionTable("", "o", "", "no-headers", "output")),
    },
    frozenset({"exec", "run", "debug", "cp", "plugin", "attach", "proxy", "edit", "kustomize"}),
)
_FORGE_LIST = OptionTable(
    "dc",
    "LslaARSBHqtuefbjO",
    "",
    "draft comments name-only patch json archived fork source log log-failed verbose exit-status yaml",
    "limit state label assignee author app search base head repo json jq template user event branch workflow status "
    "milestone mention job color sort order owner language visibility topic",
)
_FORGE = VerbTool(
    OptionTable(long="version help", own_first=True),
    {
        **_verbs("pr list,pr view,pr diff,pr status,pr checks,issue list,issue view,issue status", _FORGE_LIST),
        **_verbs("repo list,repo view,run list,run view,release list,release view,workflow list", _FORGE_LIST),
        **_verbs("workflow view,label list,gist list,search prs,search issues,search repos", _FORGE_LIST),
        **_verbs("search code,search commits,milestone list,cache list,status,version", _FORGE_LIST),
        ("auth", "status"): OptionTable(),
    },
    frozenset({"extension", "ext", "extensions", "codespace", "cs", "alias", "config", "browse"}),
)
_PACKAGE_LIST = OptionTable(
    "otlv",
    "",
    "",
    "outdated uptodate latest tree verbose all no-dev short format",
    "format depth only with without package exclude",
)
_PYTHON_PACKAGES = VerbTool(
    OptionTable("qv", "", "", "version help quiet verbose offline isolated no-color no-progress", own_first=True),
    _verbs(
        "list,show,freeze,check,help", OptionTable("ofv", "", "", "outdated files verbose uptodate local", "format")
    ),
)

# Of macOS: its settings, its keychain and its backups.
_PLAIN = OptionTable(own_first=True)
_SETTINGS = VerbTool(_PLAIN, _verbs("read,read-type,domains,find,help", OptionTable()))
_KEYCHAIN = VerbTool(
    _PLAIN,
    {
        **_verbs("list-keychains,help", OptionTable()),
        **_verbs("find-certificate,find-identity", OptionTable("apvZ", "c")),
    },
)
_BACKUPS = VerbTool(
    _PLAIN, _verbs("status,version,listbackups,latestbackup,destinationinfo,isexcluded,help", OptionTable())
)

VERB_TOOLS: Mapping[str, VerbTool] = {
    "defaults": _SETTINGS,
    "security": _KEYCHAIN,
    "tmutil": _BACKUPS,
    "docker": _CONTAINERS,
    "podman": _CONTAINERS,
    "kubectl": _CLUSTER,
    "oc": _CLUSTER,
    "gh": _FORGE,
    "pip": _PYTHON_PACKAGES,
    "pip3": _PYTHON_PACKAGES,
    "uv": VerbTool(
        OptionTable("qvn", "", "", "version help quiet verbose offline no-progress no-cache", own_first=True),
        _verbs("tree,version,pip list,pip show,pip freeze,pip check,pip tree,python list,tool list", _PACKAGE_LIST),
        frozenset({"run", "tool", "x"}),
    ),
    "poetry": VerbTool(
        OptionTable("qvnV", "", "", "version help quiet verbose no-interaction no-ansi no-cache", own_first=True),
        _verbs("show,version,check,search,env info,env list,about", _PACKAGE_LIST),
        frozenset({"run", "shell", "config", "self"}),
    ),
}


def verb_problem(name: str, words: Sequence[str], named_words: int, spelled: Collection[str]) -> str:
    """Empty, or why a wildcard rule does not cover this command. `words` begin with the program."""
    tool = VERB_TOOLS[name]
    read = tool.before.read(words[1:])
    if read.problem:
        return read.problem
    if not read.operands:
        return ""
    at = len(words) - len(read.operands)
    for length in (2, 1):
        verbs = tuple(words[at : at + length])
        if table := tool.looking.get(verbs) or (tool.named.get(verbs) if named_words >= at + length else None):
            problem = table.problem(words[at + length :])
            return f"{' '.join(words[at : at + length])}: {problem}" if problem else ""
    verb = words[at]
    if tuple(words[at : at + 2]) in tool.named:
        named = " ".join(words[at : at + 2])
        return f"{named} runs what the project says; a rule must spell it out ({name} {named} *)"
    if verb in tool.running:
        return f"{verb} runs what its arguments say; only a rule that spells the whole command covers it"
    if any(len(looking) > 1 and looking[0] == verb for looking in tool.looking):
        # The first word only says what it is about: `gh pr`.
        verb = " ".join(words[at : at + 2])
        at += 1
    if named_words <= at:
        return f"{verb} may change something; a rule must spell it out ({name} {verb} *)"
    return unknown_problem(words, named_words, spelled)
