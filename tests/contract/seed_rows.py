"""What of each of the five systems that goat-mcp grew from works here, and the tests that show it.

A literal table that a reviewer can read; docs/seeds.md is made of it, and `test_seed_rows` holds each test it names
against the tree.
"""

from __future__ import annotations

from dataclasses import dataclass

SEEDS = {
    "goat": "Goat tool system",
    "spec04": "Goat Spec 04",
    "goa": "goa",
    "goondan": "Goondan",
    "shelly": "Shelly toolbox",
}


@dataclass(frozen=True)
class SeedRow:
    """One thing that must work. `shown_by` are `FILE::TEST` or a whole `FILE`, below tests/.

    `waits` is what nothing shows yet: `DATE: what and why`.
    """

    seed: str
    what: str
    shown_by: tuple[str, ...]
    waits: str = ""


def _row(seed: str, what: str, shown_by: str, *, waits: str = "") -> SeedRow:
    return SeedRow(seed, what, tuple(shown_by.split()), waits)


SEED_ROWS: tuple[SeedRow, ...] = (
    _row("goat", "the 21 tools", "contract/test_every_tool.py contract/test_fields_of_the_contract.py"),
    _row(
        "goat",
        "the registry: register, unregister by prefix, get, list, names that clash",
        "catalog/test_registry.py contract/test_registry_cases.py",
    ),
    _row("goat", "the registry under threads: safe to change, readers never wait", "catalog/test_registry_threads.py"),
    _row(
        "goat",
        "the way of a call: validation, permission, hooks, result",
        "calls/test_pipeline.py calls/hooks/test_configured.py",
    ),
    _row(
        "goat",
        "progress at the start and the end of a call's work, with the seconds it took",
        "calls/test_work_notices.py e2e/test_work_notices.py",
    ),
    _row("goat", "risk by side effect, and what a mode allows", "calls/permissions/test_decide.py"),
    _row(
        "goat",
        "five tools that nobody is asked about, unless a rule denies them",
        "calls/permissions/test_decide.py::test_the_five_are_allowed_in_every_mode_but_not_against_a_deny_rule",
    ),
    _row("goat", "a refusal stops the rest of a turn, and each call has its answer", "calls/test_batch.py"),
    _row(
        "goat",
        "teams of agents that write to each other, behind their switch",
        "agents/teams/test_team_of_agents.py catalog/test_presets.py",
    ),
    _row(
        "goat", "the task manager", "commands/tasks/test_manager.py tools/test_task_output.py tools/test_task_stop.py"
    ),
    _row(
        "goat",
        "tools of MCP servers, named `mcp__server__tool`, with their risk by their hints",
        "server/test_adapter.py::test_a_deny_rule_holds_for_a_built_in_tool_and_an_upstreams_alike "
        "upstreams/listing/test_risk.py::test_the_claimed_class_of_all_nine_hint_pairs",
    ),
    _row(
        "spec04", "the input schemas, field by field", "contract/test_spec_04_checklist.py::test_schema_completeness_*"
    ),
    _row(
        "spec04",
        "`AgentInput.team_name`: the agent is a member of the live team",
        "agents/teams/test_team_of_agents.py::test_agent_adds_a_member_*",
    ),
    _row("spec04", "the rules of the input fields, all problems at once", "contract/test_every_problem_at_once.py"),
    _row("spec04", "the verification checklist", "contract/test_spec_04_checklist.py"),
    _row("spec04", "definitions, calls and answers in the form of OpenAI and LiteLLM", "catalog/test_openai_format.py"),
    _row(
        "spec04",
        "inputs are validated before anything is sent, those of MCP tools too",
        "upstreams/listing/test_input_check.py",
    ),
    _row("spec04", "allowed and disallowed tools, and presets", "catalog/test_presets.py"),
    _row("goa", "tools that document themselves: a short text, a page, examples", "tools/docs/test_page.py"),
    _row(
        "goa",
        "pages of every tool, its author's long text and examples too; what built-in examples show is what they gave",
        "tools/docs/test_page.py::test_a_registered_tools_own_long_text_is_on_its_page "
        "cli/test_docs.py::test_a_manifest_brings_a_long_text_and_examples_with_their_output "
        "calls/extensions/test_installed.py::test_its_tools_have_a_long_text_and_examples "
        "contract/test_every_tool_is_documented.py::test_each_example_of_a_page_shows_what_comes_back",
    ),
    _row(
        "goa",
        "paths that begin with `@`, and names that are nearly right",
        "files/workspace/test_resolve.py::test_one_file_has_several_spellings files/workspace/test_near_names.py "
        "tools/test_read.py::test_a_near_name_is_opened_only_when_the_user_allows_it_and_it_is_named",
    ),
    _row("goa", "edits that forgive, in three tiers", "files/editing/test_matching.py tools/test_edit.py"),
    _row(
        "goa",
        "search results in order of rank, the user's own order, and each side of a `\\|` by itself",
        "files/search/test_priority.py "
        "tools/test_grep.py::test_grep_009_terms_of_an_alternation_are_searched_when_the_whole_finds_nothing",
    ),
    _row("goa", "what may be run by the shell, its directory and variables, and long output", "tools/test_bash.py"),
    _row(
        "goa",
        "compression of what commands print",
        "commands/compression/test_recorded_outputs.py tools/test_bash_compression.py",
    ),
    _row(
        "goa",
        "source code with line numbers, from `cat`, `head` and `tail`",
        "tools/test_bash_compression.py::"
        "test_source_code_comes_with_line_numbers_and_the_file_as_printed_stays_at_hand "
        "commands/compression/test_odd_outputs.py::test_source_code_* "
        "commands/compression/test_odd_outputs.py::test_the_end_of_source_code_has_the_numbers_that_the_file_says",
    ),
    _row("goa", "its own interface: names, fields and defaults, by `--toolset goa`", "catalog/test_goa_tools.py"),
    _row("goa", "review mode", "files/changes/test_review.py"),
    _row("goa", "an agent in a worktree of its own", "agents/test_worktree.py"),
    _row("goa", "calls side by side, conflicting ones one after the other", "calls/test_scheduler.py"),
    _row("goa", "ssh_bash", "manifests/ssh_bash/test_ssh_bash.py"),
    _row("goa", "bg_exec", "manifests/bg_exec/test_bg_exec.py"),
    _row("goa", "goa_command", "manifests/goa_command/test_goa_command.py"),
    _row("goa", "git stager", "agents/test_git_stager.py"),
    _row("goa", "memento", "manifests/memento/test_memento.py manifests/memento/test_files_of_notes.py"),
    _row(
        "goondan",
        "tools declared in YAML, and what is wrong with a document",
        "manifests/test_bad_manifests.py manifests/test_mutated_manifests.py cli/test_manifest.py "
        "cli/test_manifest_check.py docs/test_first_tool.py",
    ),
    _row(
        "goondan",
        "a bundle as it is written: tools in Python, JavaScript and TypeScript, agents with theirs; what has no effect "
        "is named",
        "manifests/test_goondan_bundle.py manifests/test_javascript_handlers.py",
    ),
    _row("goondan", "references, of which one with a package means just that tool", "manifests/test_references.py"),
    _row("goondan", "`resource__export`, in the one registry", "manifests/test_gateway_over_manifests.py"),
    _row(
        "goondan", "handlers of `(ctx, input)`", "manifests/test_python_handlers.py manifests/test_handlers_agents.py"
    ),
    _row(
        "goondan",
        "what a handler is given: directory, logger, other agents, message, the call's id",
        "manifests/test_python_handlers.py::test_the_context_has_what_a_tool_needs_and_no_more "
        "manifests/test_handlers_agents.py manifests/test_handler_log.py",
    ),
    _row("goondan", "handlers in any language", "manifests/test_command_entries.py manifests/test_http_entries.py"),
    _row(
        "goondan",
        "a catalog for each step, narrower than the registry",
        "catalog/test_catalog.py calls/extensions/test_steps.py",
    ),
    _row("goondan", "tool search", "catalog/test_deferred_listing.py catalog/test_search_index.py"),
    _row(
        "goondan",
        "errors with name, message and suggestion, cut at `errorMessageLimit`",
        "manifests/test_python_handlers.py::test_an_exception_is_an_error_with_its_own_name_words_and_suggestion "
        "manifests/test_python_handlers.py::test_a_long_message_is_cut_at_the_limit_of_the_manifest",
    ),
    _row(
        "goondan",
        "extensions around a call, like an onion",
        "calls/test_pipeline.py::test_extensions_wrap_the_call_like_an_onion calls/extensions/test_installed.py",
    ),
    _row(
        "goondan",
        "tools that extensions add while it runs, and none that they replace",
        "calls/extensions/test_steps.py::test_a_tool_added_later_is_told_to_clients_and_can_be_called "
        "calls/extensions/test_steps.py::test_an_extension_replaces_no_tool",
    ),
    _row(
        "goondan",
        "middleware around unknown names, and refusals as results; hooks with the input and the model's id of the call",
        "calls/extensions/test_what_layers_see.py calls/hooks/test_functions.py",
    ),
    _row("goondan", "base: bash", "manifests/bash/test_bash.py"),
    _row("goondan", "base: file-system", "manifests/file_system/test_file_system.py"),
    _row("goondan", "base: http-fetch", "manifests/http_fetch/test_http_fetch.py"),
    _row("goondan", "base: json-query", "manifests/json_query/test_json_query.py"),
    _row("goondan", "base: text-transform", "manifests/text_transform/test_text_transform.py"),
    _row("goondan", "base: agents", "manifests/agents/test_agents.py e2e/test_base_agents_with_a_model.py"),
    _row("goondan", "base: self-restart", "manifests/self_restart/test_self_restart.py"),
    _row("goondan", "base: telegram", "manifests/telegram/test_telegram.py"),
    _row("goondan", "base: slack", "manifests/slack/test_slack.py"),
    _row(
        "shelly",
        "a flat box of tools: register, get, merge, list",
        "catalog/test_registry.py::test_registries_merge_and_a_shared_name_needs_words "
        "embed/test_toolbox.py test_embed.py",
    ),
    _row("shelly", "a handler's error message reaches the caller", "calls/test_errors_of_authors.py"),
    _row(
        "shelly",
        "tools of an MCP session in a box (mcpclient; Goat's RegisterMCPTool), and a box served over MCP (mcpserver)",
        "embed/test_session_tools.py docs/test_library.py::test_the_session_on_the_page_gives_its_tools_to_a_box "
        "docs/test_library.py::test_the_server_on_the_page_serves_its_function_over_mcp",
    ),
    _row("shelly", "skills", "manifests/test_skills.py"),
    _row(
        "shelly",
        "a call that never raises",
        "calls/test_pipeline.py::test_an_unknown_tool_is_a_result_and_not_an_exception "
        "calls/test_pipeline.py::test_a_bug_shows_the_call_id_and_nothing_of_itself",
    ),
)
