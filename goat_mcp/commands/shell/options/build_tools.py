"""Programs that run what a project says: package scripts, test runners, compilers. A rule for one lets the project's
own code run; options that would choose other code, configuration, directories or outputs are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goat_mcp.commands.shell.options.table import Arguments, OptionTable, only_here, only_here_with_values

_ASK = "a rule must spell out more of it"


_FILE_OF_CODE = re.compile(r"/|\.[cm]?[jt]sx?\Z")


def _only_script_names(arguments: Arguments) -> str:
    word = arguments.operands[0] if arguments.operands else ""
    return f"{word} is a file, no script of the project" if _FILE_OF_CODE.search(word) else ""


def _only_compares(arguments: Arguments) -> str:
    return "" if arguments.has("--check", "--diff") else "it would change files without --check or --diff"


def _no_assignment(arguments: Arguments) -> str:
    return next((f"{word} changes what the makefile runs" for word in arguments.operands if "=" in word), "")


_SCRIPT = OptionTable("s", long="silent if-present workspaces include-workspace-root", long_valued="workspace")
_SCRIPT_RUNNER = OptionTable("s", long="silent if-present", own_first=True, check=_only_script_names)
_LIST = OptionTable("agl", long="json long all parseable global prod dev", long_valued="depth")
_INSTALL = OptionTable(
    "DESP",
    long="save-dev save save-exact no-save save-prod save-optional no-audit no-fund legacy-peer-deps "
    "prefer-offline offline ignore-scripts frozen-lockfile immutable production",
)
_CARGO_LONG = (
    "release all workspace lib bins tests examples benches all-targets all-features no-default-features verbose quiet "
    "locked offline frozen no-run no-fail-fast doc no-deps keep-going future-incompat-report"
)
_CARGO_VALUED = "package exclude bin test example bench features jobs color message-format profile"
_CARGO = OptionTable("rvq", "pFj", "", _CARGO_LONG, _CARGO_VALUED)
_GO_BUILD = "race v x n a work trimpath"
_GO_VALUED = "p tags mod"
_GO = OptionTable(long=_GO_BUILD, long_valued=_GO_VALUED, one_dash=True, check=only_here)
_RUFF = OptionTable(
    "qvsn",
    "",
    "",
    "no-fix diff statistics show-files show-settings quiet verbose silent no-cache preview exit-zero "
    "force-exclude check",
    "select ignore extend-select line-length output-format target-version exclude",
)

_VERBS: Mapping[str, Mapping[str, OptionTable]] = {
    "npm": {
        **dict.fromkeys(("run", "run-script", "test", "t", "start", "stop"), _SCRIPT),
        **dict.fromkeys(("ls", "list", "outdated", "why", "explain"), _LIST),
    },
    "cargo": {
        **dict.fromkeys(("build", "b", "check", "c", "tree", "fetch", "doc", "d"), _CARGO),
        **dict.fromkeys(("test", "t", "run", "r", "bench"), _CARGO),
        "clippy": _CARGO,
        "fmt": OptionTable("vq", "p", "", "all check verbose quiet", "package"),
        "version": OptionTable(),
    },
    "go": {
        **dict.fromkeys(("build", "vet"), _GO),
        "test": OptionTable(
            long=f"{_GO_BUILD} short failfast cover benchmem json",
            long_valued=f"{_GO_VALUED} run skip count timeout bench benchtime parallel list shuffle cpu covermode",
            one_dash=True,
            check=only_here,
        ),
        "list": OptionTable(long="m u json deps test e versions", long_valued="f", one_dash=True),
        "fmt": OptionTable(long="n x", one_dash=True),
        "version": OptionTable(),
        "doc": OptionTable(long="all short src u c", one_dash=True),
    },
    "ruff": {
        "check": _RUFF,
        "format": OptionTable("qvsn", "", "", "check diff quiet verbose", "line-length exclude", check=_only_compares),
        **dict.fromkeys(("rule", "linter", "version"), OptionTable("", "", "", "all", "output-format")),
    },
    **{
        tool: {
            **dict.fromkeys(("run", "test", "start"), _SCRIPT_RUNNER),
            **dict.fromkeys(("list", "ls", "why", "outdated"), _LIST),
        }
        for tool in ("yarn", "pnpm", "bun")
    },
}
"""What a rule for the program alone covers."""
_NAMED_VERBS: Mapping[str, Mapping[str, OptionTable]] = {
    "npm": dict.fromkeys(("install", "i", "ci", "add"), _INSTALL),
    **{tool: dict.fromkeys(("install", "add"), _INSTALL) for tool in ("yarn", "pnpm", "bun")},
    "ruff": {"format": _RUFF},
    "cargo": {"clean": _CARGO, "update": _CARGO, "add": _CARGO},
    "go": {
        "run": OptionTable(long=_GO_BUILD, long_valued=_GO_VALUED, one_dash=True, own_first=True),
        "mod": OptionTable(),
        "get": OptionTable(long="u t v x", one_dash=True),
        **dict.fromkeys(("generate", "install"), _GO),
    },
}
"""What a rule must spell out with its verb."""
_RUNNING = frozenset({"exec", "dlx", "x", "create", "node", "npm", "config", "init", "global", "link", "set", "plugin"})
"""Verbs of yarn and its kind that run or choose what is no script of the project."""
_OWN_AFTER_DASHES: Mapping[str, frozenset[str]] = {
    "npm": frozenset({"run", "run-script", "test", "t", "start", "stop"}),
    "cargo": frozenset({"test", "t", "run", "r", "bench"}),
}
"""Verbs that hand everything after `--` to the project's own program."""

SINGLE_TABLES: Mapping[str, OptionTable] = {
    "make": OptionTable(
        "bBdeikmnpqrRsStvw",
        "",
        "jl",
        "always-make dry-run just-print recon ignore-errors jobs keep-going no-builtin-rules no-builtin-variables "
        "silent quiet question no-keep-going touch trace print-directory no-print-directory output-sync "
        "print-data-base warn-undefined-variables version help",
        check=_no_assignment,
    ),
}


def tool_problem(name: str, words: Sequence[str], named_words: int) -> str:
    """Empty, or why a wildcard rule does not cover this command of a build tool. `words` are the arguments."""
    verb = words[0] if words else ""
    if not verb:
        return ""
    if name in ("yarn", "pnpm") and verb == "workspace" and len(words) > 2 and named_words > 2:
        return tool_problem(name, words[2:], named_words - 2)
    table = (_NAMED_VERBS[name].get(verb) if named_words > 1 else None) or _VERBS[name].get(verb)
    if table is None and verb.startswith("-"):
        return "" if verb in ("--version", "-v", "-V", "--help") and not words[1:] else f"{verb} before a verb"
    if (
        table is None
        and named_words > 1
        and name in ("yarn", "pnpm", "bun")
        and verb not in _RUNNING | {"workspace", "workspaces"}
    ):
        # `yarn build` is `yarn run build`.
        return ""
    if table is None:
        return f"{verb}: {_ASK}" if named_words < 2 else f"{verb} is not known to be harmless"
    own = list(words[1:])
    if verb in _OWN_AFTER_DASHES.get(name, ()) and "--" in own:
        own = own[: own.index("--")]
    elif name == "cargo" and "--" in own:
        rest = own[own.index("--") + 1 :]
        own = own[: own.index("--")]
        if problem := _lint_levels_only(verb, rest):
            return problem
    problem = table.problem(own)
    return f"{verb}: {problem}" if problem else ""


def _lint_levels_only(verb: str, rest: Sequence[str]) -> str:
    """`cargo clippy -- -D warnings`: what goes to the compiler may only choose lints."""
    if verb == "fmt" and set(rest) <= {"--check"}:
        return ""
    waiting = list(reversed(rest))
    while waiting:
        word = waiting.pop()
        if word in ("-D", "-W", "-A", "-F") and waiting and not waiting[-1].startswith("-"):
            waiting.pop()
        elif not (len(word) > 2 and word[:2] in ("-D", "-W", "-A", "-F") and word[2] != "-"):
            return f"{verb}: {word} goes to the compiler"
    return ""


TOOLS = frozenset(_VERBS)


_COMMON = "help version"

CHECKERS: Mapping[str, OptionTable] = {
    "pytest": OptionTable(
        "vqsxlh",
        "kmn",
        "r",
        "verbose quiet exitfirst lf last-failed ff failed-first nf new-first sw stepwise collect-only co no-header "
        "no-summary showlocals runxfail strict-markers strict-config setup-show full-trace markers fixtures version "
        "help no-cov cache-show disable-warnings cache-clear",
        "maxfail tb durations durations-min color timeout capture show-capture deselect ignore ignore-glob "
        "verbosity import-mode numprocesses dist cov",
        check=only_here,
    ),
    "mypy": OptionTable(
        "v",
        "m",
        "",
        f"{_COMMON} strict verbose pretty show-error-codes ignore-missing-imports no-incremental show-error-context",
        "module package python-version",
        check=only_here,
    ),
    "pyright": OptionTable(
        long=f"{_COMMON} verbose stats warnings outputjson",
        long_valued="project level pythonversion pythonplatform",
        separate="p",
        check=only_here_with_values,
    ),
    "tsc": OptionTable(
        long=f"{_COMMON} b w h v noEmit build watch strict pretty listFiles incremental skipLibCheck showConfig "
        "allowJs checkJs esModuleInterop diagnostics traceResolution",
        long_valued="p t project target module moduleResolution jsx lib",
        # `-tsBuildInfoFile x` is one option to tsc.
        one_dash=True,
        check=only_here_with_values,
    ),
    "eslint": OptionTable(
        "hv",
        "",
        "",
        f"{_COMMON} quiet cache no-inline-config color no-color report-unused-disable-directives fix-dry-run debug "
        "no-error-on-unmatched-pattern env-info",
        "ext max-warnings",
        check=only_here,
    ),
    "prettier": OptionTable(
        "clhu",
        "",
        "",
        f"{_COMMON} check list-different no-color no-error-on-unmatched-pattern ignore-unknown",
        "log-level",
        check=only_here,
    ),
    "jest": OptionTable(
        "biouh",
        long=f"{_COMMON} runInBand bail coverage no-coverage verbose silent ci onlyChanged lastCommit passWithNoTests "
        "forceExit detectOpenHandles listTests json colors showConfig no-cache expand",
        long_valued="testNamePattern testPathPattern testPathPatterns maxWorkers testTimeout",
        # `-tc x` is `-t -c x`.
        separate="tw",
        check=only_here,
    ),
    "vitest": OptionTable(
        "hv",
        long=f"{_COMMON} run passWithNoTests silent no-color",
        long_valued="testNamePattern bail testTimeout maxWorkers retry",
        separate="t",
        check=only_here,
    ),
    "black": OptionTable(
        "qv", "lt", "", f"{_COMMON} check diff color quiet verbose fast safe", "line-length target-version",
        check=only_here,
    ),
    "isort": OptionTable("cqv", "", "", f"{_COMMON} check check-only diff quiet verbose", "profile", check=only_here),
    "flake8": OptionTable(
        "qv", "", "", f"{_COMMON} count statistics show-source benchmark", "select ignore extend-ignore "
        "max-line-length max-complexity exclude", check=only_here,
    ),
}  # fmt: skip
