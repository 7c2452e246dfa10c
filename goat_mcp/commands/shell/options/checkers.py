"""Programs that test and check a project as its own configuration says. Options that would choose another
configuration, plugins, programs or outputs are not in the tables, and neither are files that lie elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from goat_mcp.commands.shell.options.outside_paths import only_here, only_here_with_values
from goat_mcp.commands.shell.options.table import OptionTable

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
