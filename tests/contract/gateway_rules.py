"""What the gateway promises between clients and upstreams: where each promise is kept, which tests show it, what waits.

A literal table that a reviewer can read; docs/gateway.md is made of it, and `test_gateway_rules` holds every module,
test and id it names against the tree.
"""

from __future__ import annotations

from dataclasses import dataclass

AREAS = {
    "AGG": "One catalog",
    "NAM": "Names",
    "COL": "Collisions",
    "REL": "Lossless relay",
    "ERA": "Two eras of the protocol",
    "FLW": "Progress, cancellation, time limits, logs",
    "CHG": "Changes and subscriptions",
    "SCH": "Schemas",
    "RSK": "Risk and hints",
    "LIF": "Life of an upstream",
    "ISO": "Isolation",
    "CFG": "Configuration",
    "PRF": "Profiles",
    "WSP": "Workspaces",
    "DEF": "Large catalogs",
    "SPL": "Large results",
    "AUT": "Logins",
    "PIN": "Pins",
    "CHN": "Chains of gateways",
    "OBS": "Status and doctor",
}


@dataclass(frozen=True)
class GatewayRule:
    """One promise. `kept_in` are modules below goat_mcp/, `shown_by` are `FILE::TEST`, below tests/.

    `not_covered` is a limit that stays. `waived` is a part that waits, or that nothing shows: `DATE: what and why`.
    """

    id: str
    promise: str
    kept_in: tuple[str, ...]
    shown_by: tuple[str, ...]
    not_covered: str = ""
    waived: str = ""

    @property
    def area(self) -> str:
        return self.id.partition("-")[0]


def _rule(
    id: str, promise: str, kept_in: str, shown_by: str, *, not_covered: str = "", waived: str = ""
) -> GatewayRule:
    return GatewayRule(id, promise, tuple(kept_in.split()), tuple(shown_by.split()), not_covered, waived)


def count_line() -> str:
    """How many of the promises are shown, for readers."""
    shown = sum(bool(rule.shown_by) for rule in GATEWAY_RULES)
    whole = sum(bool(rule.shown_by) and not rule.waived for rule in GATEWAY_RULES)
    waived = len(GATEWAY_RULES) - whole
    return f"Of {len(GATEWAY_RULES)} promises {shown} are shown by tests; {waived} have a part that waits, dated."


GATEWAY_RULES: tuple[GatewayRule, ...] = (
    _rule(
        "AGG-1",
        "Built-in tools and all that upstreams offer stand in one catalog, behind the same rules, hooks, limits and "
        "record.",
        "catalog/registry catalog/catalog calls/pipeline catalog/resource_catalog gateway/resource_calls",
        "calls/hooks/test_configured.py::"
        "test_the_hook_of_one_call_judges_built_in_and_upstream_tools_alike "
        "server/test_adapter.py::test_a_deny_rule_holds_for_a_built_in_tool_and_an_upstreams_alike "
        "server/test_resource_requests.py::test_what_upstreams_offer_stands_in_one_list_in_config_order "
        "server/test_resource_requests.py::test_reads_and_prompts_are_on_record_as_calls_are",
    ),
    _rule(
        "AGG-2",
        "A completion goes to the upstream whose prompt or template it is about; one without completions has none to "
        "give.",
        "server/handlers/prompts catalog/resource_catalog upstreams/calls/resource_requests",
        "server/test_resource_requests.py::test_completions_go_to_whoever_owns_the_prompt_or_the_template",
    ),
    _rule(
        "AGG-3",
        "What we say we can do is always the same, whatever is up, in both eras, with the same short instructions.",
        "server/adapter",
        "server/test_adapter.py::test_capabilities_and_instructions_are_the_same_in_both_eras_whatever_is_up",
        not_covered="Logging is declared in both eras: a stateless request may ask for messages, too.",
    ),
    _rule(
        "AGG-4",
        "All pages of an upstream's list are read, up to bounds; our tool list is never cut into pages, and a page "
        "of another list neither skips nor repeats an entry.",
        "upstreams/listing/paging server/handlers/resource_lists",
        "upstreams/test_stdio_upstreams.py::"
        "test_all_pages_are_listed_and_a_repeated_cursor_ends_the_list upstreams/test_isolation.py::"
        "test_a_list_that_grows_without_end_is_cut_at_a_size_and_says_so "
        "upstreams/test_resources.py::test_a_list_ends_and_says_why_it_is_not_all "
        "server/test_adapter.py::test_the_tool_list_is_whole_on_one_page_however_long_it_is "
        "server/handlers/test_resource_lists.py::test_the_pages_together_are_the_list "
        "server/handlers/test_resource_lists.py::"
        "test_a_cursor_of_the_list_as_it_was_is_refused_and_says_what_to_do",
    ),
    _rule(
        "AGG-5",
        "The order is ours first, then that of the configuration, then each upstream's own; an unchanged list is the "
        "same bytes.",
        "catalog/registry catalog/catalog",
        "catalog/test_registry.py::test_sources_keep_their_declared_order_whoever_comes_first "
        "catalog/test_registry.py::test_the_same_tools_again_are_no_change "
        "server/test_adapter.py::test_an_unchanged_list_is_the_same_in_every_answer "
        "server/test_resource_requests.py::test_what_upstreams_offer_stands_in_one_list_in_config_order",
    ),
    _rule(
        "AGG-6",
        "ListMcpResources and ReadMcpResource show this catalog, or that of one server.",
        "tools/list_mcp_resources tools/read_mcp_resource upstreams/resources",
        "e2e/test_mcp_resources.py::test_server_everything_lists_and_sends_the_same_as_directly "
        "upstreams/test_resources.py::"
        "test_a_server_is_found_by_its_configured_name_and_by_that_in_tool_names",
    ),
    _rule(
        "NAM-1",
        "Tools and prompts of upstreams are called `mcp__server__name`, and such a name comes apart in one way only.",
        "core/names upstreams/config/upstream_files",
        "core/test_names.py::test_a_name_that_was_put_together_comes_apart_the_same "
        "core/test_names.py::test_a_cleaned_server_name_parses_back_out_of_a_tool_name "
        "upstreams/config/test_upstream_files.py::"
        "test_two_names_that_are_alike_in_tool_names_are_an_error_of_the_second",
    ),
    _rule(
        "NAM-2",
        "A call goes where the table says, whatever the name looks like; rules and the record know a tool by its full "
        "name.",
        "catalog/registry core/spec catalog/catalog",
        "upstreams/listing/test_naming.py::"
        "test_a_name_that_looks_like_another_upstreams_is_its_owners "
        "server/test_adapter.py::test_rules_and_the_record_know_a_renamed_tool_by_its_full_name",
    ),
    _rule(
        "NAM-3",
        "An entry says whether its tools have full names, their own, or a short prefix.",
        "upstreams/config/entry upstreams/listing/proxy_tool core/names",
        "upstreams/test_stdio_upstreams.py::test_a_listed_tool_is_shown_whole_under_its_new_name "
        "upstreams/listing/test_naming.py::test_no_upstream_renames_another_by_being_there "
        "upstreams/config/test_upstream_files.py::"
        "test_a_broken_entry_fails_alone_and_names_key_value_and_remedy",
    ),
    _rule(
        "NAM-4",
        "Every name is one that hosts accept; one that had to be changed ends in a hash of what it was.",
        "core/names",
        "core/test_names.py::test_every_exposed_name_is_one_that_hosts_accept "
        "core/test_names.py::test_a_name_that_had_to_be_cleaned_never_meets_one_that_is_clean "
        "e2e/test_name_caps.py::"
        "test_a_name_is_as_long_as_the_host_takes_and_its_tool_is_called_by_it",
    ),
    _rule(
        "NAM-5",
        "A name depends on its own entry alone: other upstreams that come, go or move never change it.",
        "core/names upstreams/listing/proxy_tool",
        "upstreams/listing/test_naming.py::test_no_upstream_renames_another_by_being_there",
    ),
    _rule(
        "NAM-6",
        "URIs are never rewritten: a read goes to the first upstream in config order that lists it, then to whoever "
        "gave it to this client, then to the first fitting template, one that fits every URI last. What was read, "
        "started or listed before makes no difference, and ReadMcpResource with `server` reads what is shadowed. Only "
        "those of skills are qualified, as names are; with `naming: flat` the first in config order keeps its folder.",
        "catalog/resource_catalog catalog/offerings core/uri_template core/skill_uris",
        "server/test_resource_requests.py::test_a_uri_is_read_where_it_is_listed_fits_a_template_or_was_given "
        "server/test_resource_requests.py::test_f13_11_takeover_of_a_resource_by_a_later_upstream_fails "
        "catalog/test_resource_catalog.py::"
        "test_f13_11_order_whoever_listed_first_the_owner_is_the_first_in_config_order "
        "server/test_skills_of_upstreams.py::test_two_servers_with_one_skill_name_have_two_skills "
        "server/test_skills_of_upstreams.py::test_other_schemes_and_prefixes_come_back_as_they_were "
        "server/test_skills_of_upstreams.py::"
        "test_of_two_flat_servers_the_first_keeps_the_place_and_all_below_it",
    ),
    _rule(
        "COL-1",
        "Where two tools want one name the first keeps it, and the other is rejected and named with the remedy.",
        "catalog/registry upstreams/cache/tool_cache",
        "catalog/test_registry.py::"
        "test_on_a_clash_the_first_keeps_the_name_and_the_later_one_is_reported "
        "upstreams/listing/test_naming.py::"
        "test_on_a_clash_the_first_keeps_the_name_and_the_later_is_reported_with_its_remedy "
        "catalog/test_deferred_listing.py::"
        "test_COL_1_an_upstreams_tool_does_not_take_a_meta_tools_name "
        "e2e/test_reasons_in_status.py::"
        "test_whatever_is_wrong_with_upstreams_has_its_reason_in_status_and_the_others_work",
    ),
    _rule(
        "COL-2",
        "A name in use never moves to another upstream that comes later.",
        "catalog/registry",
        "catalog/test_registry.py::test_a_live_name_never_moves_to_a_source_that_comes_later_in_time "
        "upstreams/config/test_reload.py::"
        "test_a_live_name_stays_with_its_upstream_and_is_free_for_another_at_the_reload_that_takes_it_away",
    ),
    _rule(
        "REL-1",
        "A client gets what the upstream sent, but for what belongs to one hop or is listed as changed.",
        "upstreams/calls/calls upstreams/listing/proxy_tool upstreams/resources server/result_compatibility",
        "e2e/test_upstreams_of_others.py::"
        "test_every_answer_of_server_everything_arrives_as_it_was_sent "
        "e2e/test_upstreams_of_others.py::test_their_tools_are_listed_beside_the_built_in_ones "
        "upstreams/test_stdio_upstreams.py::test_a_result_reaches_the_client_as_the_upstream_sent_it "
        "server/test_resource_requests.py::test_what_an_upstream_sends_is_what_a_client_gets",
        not_covered="The reference server knows the handshake era only; what stateless upstreams send is held against "
        "a server of our own. Null members of `_meta` are lost where the SDK drops them.",
    ),
    _rule(
        "REL-2",
        "In results structured content, `_meta`, annotations, icons and every kind of content survive unchanged. In "
        "definitions invisible characters are shown (R-UP-7b), all else survives.",
        "upstreams/calls/calls core/result catalog/schemas/visible_schema",
        "upstreams/test_stdio_upstreams.py::test_a_result_reaches_the_client_as_the_upstream_sent_it "
        "upstreams/test_stdio_upstreams.py::test_a_listed_tool_is_shown_whole_under_its_new_name "
        "upstreams/listing/test_listed_entries.py::test_f13_12* "
        "upstreams/test_envelope.py::test_unknown_members_and_empty_content_pass "
        "server/test_resource_requests.py::test_what_an_upstream_sends_is_what_a_client_gets",
    ),
    _rule(
        "REL-3",
        "Output schemas are passed on; a result that breaks its own is relayed and counted, or an error where you want "
        "that.",
        "upstreams/calls/output_check catalog/schemas/bounded_schema",
        "upstreams/calls/test_output_check.py::test_clients_get_what_the_mode_of_the_upstream_says "
        "upstreams/calls/test_output_check.py::"
        "test_a_mismatch_is_counted_each_time_and_logged_once_per_tool_without_its_data",
    ),
    _rule(
        "REL-4",
        "A kind of content that we do not know becomes text of its JSON; the rest of the result is as it was.",
        "upstreams/calls/calls server/result_compatibility",
        "upstreams/test_stdio_upstreams.py::"
        "test_a_broken_answer_fails_its_call_and_odd_content_becomes_text "
        "server/test_downgrade_result.py::"
        "test_an_unreadable_block_becomes_its_json_beside_the_good_ones",
    ),
    _rule(
        "REL-5",
        "Keys of `_meta` that belong to the protocol are made again for each hop, both ways; all others pass.",
        "upstreams/envelope upstreams/transports/progress_meta upstreams/transports/dispatcher server/cancellations",
        "upstreams/test_envelope.py::test_no_reserved_key_of_the_client_reaches_the_upstream "
        "upstreams/test_envelope.py::"
        "test_no_reserved_key_and_no_hop_member_of_the_upstream_reaches_the_client "
        "upstreams/test_hostile_upstreams.py::test_up_40_what_only_the_protocol_may_say_is_stripped "
        "e2e/test_relayed_notices.py::test_progress_keeps_its_meta_but_for_what_only_the_protocol_may_say "
        "e2e/test_relayed_notices.py::test_an_update_of_a_resource_keeps_its_meta "
        "e2e/test_relayed_notices.py::test_an_upstream_hears_why_a_call_was_cancelled",
        not_covered="A question that an upstream withdraws is withdrawn at the client in our words. Progress "
        "that a client reports of its own answer is not passed on. In the stateless era over HTTP a closed stream "
        "cancels, which has no room for a reason.",
    ),
    _rule(
        "REL-6",
        "An upstream's protocol errors keep code, message and data, and errors of its tools stay results; ours name "
        "the upstream.",
        "core/errors upstreams/calls/calls",
        "upstreams/test_stdio_upstreams.py::"
        "test_a_json_rpc_error_of_the_upstream_keeps_code_message_and_data "
        "e2e/test_bad_upstreams.py::test_an_error_of_a_server_keeps_code_message_and_data "
        "server/test_resource_requests.py::test_an_upstreams_own_error_keeps_code_message_and_data "
        "upstreams/test_http_upstreams.py::"
        "test_an_answer_that_is_none_is_an_error_of_ours_that_names_the_upstream",
    ),
    _rule(
        "REL-7",
        "The first call of a new process already carries the headers that the tool's schema asks for.",
        "upstreams/transports/connection",
        "upstreams/test_http_upstreams.py::test_the_first_call_of_a_cold_process_mirrors_arguments_into_headers",
    ),
    _rule(
        "ERA-1",
        "Clients of both eras are served over both transports, and greeted before any upstream has answered.",
        "server/adapter server/stdio/transport server/http/server",
        "e2e/test_clients.py::test_the_typescript_client_works_in_both_eras "
        "e2e/test_clients.py::test_the_python_client_works "
        "server/test_adapter.py::test_a_client_is_greeted_while_an_upstream_hangs",
        not_covered="The 100 ms are measured by `make bench` (start-up), not held by a test.",
    ),
    _rule(
        "ERA-2",
        "An upstream is taken for stateless only if it lists that revision; refusals and faults prove nothing, and the "
        "verdict is dropped when it says so, without running a call twice.",
        "upstreams/transports/connect upstreams/supervisor",
        "upstreams/test_http_upstreams.py::"
        "test_one_that_refuses_our_revision_and_names_it_is_asked_once_more "
        "upstreams/test_http_upstreams.py::test_a_server_error_in_answer_to_the_probe_proves_no_era "
        "upstreams/calls/test_calls.py::test_a_call_that_provably_never_ran_is_tried_once_more",
    ),
    _rule(
        "ERA-2b",
        "An upstream that speaks both eras is spoken to in that of the client whose call it is; one that speaks one "
        "era is bridged, and a handshake that fails costs no call.",
        "upstreams/eras upstreams/connection_pool upstreams/supervisor upstreams/transports/connect upstreams/skills",
        "upstreams/test_eras.py::"
        "test_a_tool_that_asks_does_so_in_the_way_of_each_clients_era_at_the_same_time "
        "upstreams/test_eras.py::"
        "test_one_that_speaks_one_era_is_bridged_and_is_not_tried_in_the_other_again "
        "upstreams/test_eras.py::"
        "test_what_a_client_lists_is_started_in_its_era_and_a_client_of_the_other_has_a_process_beside_it "
        "upstreams/test_eras.py::"
        "test_the_next_start_knows_the_eras_and_one_that_has_lost_one_is_bridged "
        "upstreams/test_eras.py::"
        "test_a_failed_handshake_is_no_failed_call_where_the_other_era_may_work "
        "passthrough/test_both_eras.py::test_clients_of_both_eras_of_one_gateway_see_what_the_server_does "
        "passthrough/test_both_eras.py::"
        "test_clients_of_both_eras_see_what_a_server_does_that_their_windows_share",
    ),
    _rule(
        "ERA-3",
        "An upstream is told what the client behind the call can do and no more; what was not declared is refused "
        "at once.",
        "upstreams/transports/server_requests upstreams/transports/callers upstreams/envelope",
        "e2e/test_upstreams_that_ask.py::"
        "test_a_client_that_cannot_answer_is_told_what_is_missing_and_the_server_hears_at_once "
        "e2e/test_upstreams_that_ask.py::test_what_the_entry_does_not_allow_is_not_asked "
        "upstreams/test_stdio_upstreams.py::"
        "test_a_request_of_the_upstream_is_answered_with_an_error_at_once "
        "upstreams/test_hostile_upstreams.py::"
        "test_up_29_questions_nobody_allowed_are_refused_at_once",
    ),
    _rule(
        "ERA-4",
        "An upstream's questions reach the client behind the call, whichever eras the two speak.",
        "upstreams/transports/callers upstreams/calls/attempts upstreams/transports/server_requests "
        "server/suspended_calls",
        "e2e/test_upstreams_that_ask.py::"
        "test_forms_and_the_clients_model_are_asked_whoever_stands_behind "
        "e2e/test_upstreams_that_ask.py::"
        "test_upstreams_hear_of_the_workspace_as_the_roots_of_a_client_that_has_some "
        "e2e/test_upstreams_that_ask.py::"
        "test_a_page_to_open_reaches_the_person_in_every_pair_of_eras "
        "upstreams/calls/test_multi_round.py::"
        "test_each_answer_goes_back_with_the_state_it_was_asked_with "
        "upstreams/calls/test_multi_round.py::"
        "test_ten_rounds_are_taken_and_an_eleventh_question_is_put_to_nobody",
    ),
    _rule(
        "ERA-5",
        "A call that waits for answers is resumed by whoever made it, once; a sealed state that was changed, used "
        "or taken over is refused, and nothing runs twice.",
        "server/suspended_calls upstreams/calls/attempts upstreams/transports/server_requests",
        "server/test_upstreams_suspended_calls.py::"
        "test_the_answer_counts_once_and_only_for_the_call_that_was_asked_about "
        "server/test_upstreams_suspended_calls.py::"
        "test_a_call_that_was_parked_in_a_process_that_is_gone_is_lost_and_runs_no_more "
        "server/test_asking.py::test_a_parked_call_ends_with_its_time "
        "server/test_suspended_calls.py::"
        "test_who_parks_too_many_calls_loses_the_oldest_of_its_own_whatever_clients_it_comes_by "
        "server/test_suspended_calls.py::"
        "test_where_all_have_too_many_together_whoever_has_most_loses_its_oldest "
        "e2e/test_asking_over_http.py::test_an_answer_that_another_session_gives_again_is_refused "
        "server/test_travelling_approval.py::"
        "test_it_is_good_for_the_arguments_it_was_asked_about_only",
        not_covered="The state of a stateless upstream waits with us instead of travelling in ours: such a call is "
        "lost with the process, too.",
    ),
    _rule(
        "ERA-6",
        "Roots are those of the named workspace, else the client's; a client that lacks what a call needs gets an "
        "error that names it.",
        "upstreams/transports/server_requests upstreams/transports/callers gateway/gateway",
        "e2e/test_upstreams_that_ask.py::"
        "test_upstreams_hear_of_the_workspace_as_the_roots_of_a_client_that_has_some "
        "e2e/test_upstreams_that_ask.py::"
        "test_a_client_that_cannot_answer_is_told_what_is_missing_and_the_server_hears_at_once "
        "e2e/test_upstreams_that_ask.py::"
        "test_an_error_that_wants_a_page_opened_is_relayed_or_becomes_the_question "
        "e2e/test_upstreams_that_ask.py::test_each_kind_of_question_names_what_the_client_lacks "
        "e2e/test_upstreams_that_ask.py::test_a_model_without_tools_is_not_asked_to_use_any "
        "e2e/test_upstreams_that_ask.py::"
        "test_an_upstream_hears_that_its_clients_roots_have_changed_and_is_told_the_new_ones "
        "server/test_adapter.py::test_where_no_workspace_was_named_the_clients_roots_are_it",
    ),
    _rule(
        "ERA-7",
        "Tasks and extensions pass only where both sides declare them; tools that need the tasks of 2025-11-25 are "
        "rejected. Tools with a document are always listed.",
        "upstreams/listing/entry_validation upstreams/envelope upstreams/transports/server_requests "
        "upstreams/calls/task_answers upstreams/calls/held_tasks gateway/upstream_tasks server/tasks/client_tasks "
        "server/tasks/sealed_task catalog/app_tools",
        "upstreams/listing/test_listed_entries.py::"
        "test_a_tool_that_runs_only_as_a_task_is_rejected_and_one_that_may_is_not "
        "e2e/test_reasons_in_status.py::"
        "test_whatever_is_wrong_with_upstreams_has_its_reason_in_status_and_the_others_work "
        "server/apps/test_apps_of_upstreams.py::test_ERA_7_* "
        "server/apps/test_rendered_apps.py::test_ERA_7_* "
        "e2e/test_inspector.py::test_it_finds_the_app_of_an_upstreams_tool_with_its_policy "
        "server/test_tasks_relay.py::"
        "test_the_extension_is_declared_for_a_client_that_declares_it_and_for_no_other "
        "server/test_tasks_relay.py::test_an_upstreams_task_passes_with_an_id_of_ours_and_all_else_as_it_is "
        "server/test_tasks_relay.py::"
        "test_a_handshake_client_gets_the_result_of_a_task_that_the_upstream_insists_on "
        "server/test_tasks_offer.py::test_a_handshake_client_hears_of_no_tasks "
        "e2e/test_agent_as_a_task.py::test_what_an_agent_answers_is_the_result_of_its_task "
        "server/test_skills_of_upstreams.py::"
        "test_skills_of_a_server_of_both_eras_are_listed_whoever_listed_its_tools_first "
        "conformance/test_tasks_scenarios.py::test_the_scenarios_for_tasks_pass "
        "conformance/test_skills_scenarios.py::test_the_scenarios_for_skills_pass_without_a_warning",
        not_covered="Of extensions only tasks are declared to upstreams; documents of MCP Apps need no word of ours.",
    ),
    _rule(
        "FLW-1",
        "A client that wants progress gets the upstream's, never backwards, with signs of life in silence.",
        "upstreams/progress upstreams/calls/calls core/heartbeat",
        "upstreams/test_stdio_upstreams.py::"
        "test_progress_of_the_upstream_reaches_a_client_that_asked_for_it "
        "upstreams/calls/test_calls.py::test_silence_is_filled_with_signs_of_life_that_never_go_back "
        "upstreams/calls/test_calls.py::test_nothing_is_reported_after_the_result "
        "e2e/test_upstreams_of_others.py::test_progress_of_a_long_operation_arrives",
    ),
    _rule(
        "FLW-2",
        "A cancelled call is cancelled at the upstream at once; its late answer is dropped and the process kept.",
        "upstreams/transports/child_pipes upstreams/calls/calls server/client_channel",
        "upstreams/test_stdio_upstreams.py::"
        "test_cancelling_a_call_cancels_it_in_the_upstream_and_keeps_the_process "
        "upstreams/test_isolation.py::"
        "test_a_late_answer_to_a_cancelled_call_is_dropped_and_the_process_kept "
        "upstreams/test_isolation.py::"
        "test_an_upstream_hears_at_once_of_many_calls_cancelled_together "
        "upstreams/test_http_upstreams.py::test_progress_and_cancellation_pass "
        "e2e/test_http_cases.py::test_an_upstream_hears_of_a_client_that_hung_up "
        "e2e/test_asking_over_http.py::"
        "test_a_call_whose_stream_a_handshake_client_closes_is_cancelled",
        not_covered="The tests allow 2 s where the promise is 100 ms: they run on loaded machines. A client of "
        "2025-11-25 whose stream is closed has 5 s to come back for it; its call is cancelled then.",
    ),
    _rule(
        "FLW-3",
        "Start, list, call and silence have time limits for each upstream; a timeout cancels and says that the call "
        "may "
        "have taken effect.",
        "upstreams/call_timeout upstreams/calls/calls upstreams/supervisor",
        "upstreams/test_stdio_upstreams.py::"
        "test_a_timeout_cancels_the_call_and_says_that_it_may_have_taken_effect "
        "upstreams/test_stdio_upstreams.py::"
        "test_progress_extends_the_idle_timeout_but_not_the_whole_one "
        "e2e/test_reasons_in_status.py::"
        "test_one_that_never_answers_and_one_without_its_sandbox_have_reasons_too "
        "upstreams/test_resources.py::test_what_came_before_a_page_that_hangs_is_kept",
        not_covered="An entry sets the limits of a call and of silence; those of start and list are ours.",
    ),
    _rule(
        "FLW-4",
        "An upstream's log messages reach the client behind the call, at its own level, with the server's name.",
        "server/calling_client upstreams/transports/server_requests upstreams/transports/callers",
        "e2e/test_upstreams_that_ask.py::"
        "test_log_messages_reach_the_client_that_caused_them_at_the_level_it_wants "
        "e2e/test_upstreams_that_ask.py::"
        "test_a_log_message_of_no_call_reaches_the_clients_of_the_connection",
        not_covered="Where calls of several clients are in flight on one connection, a message is told to none.",
    ),
    _rule(
        "CHG-1",
        "A changed list is read again for that upstream only, at most once a second; clients hear of it once what they "
        "see is new.",
        "upstreams/cache/tool_cache upstreams/upstream upstreams/client_views catalog/own_lists "
        "server/change_notifications",
        "upstreams/test_stdio_upstreams.py::"
        "test_a_flood_of_change_notices_costs_at_most_one_list_per_interval "
        "e2e/test_list_changed.py::test_a_handshake_client_is_told "
        "e2e/test_list_changed.py::test_a_2026_client_is_told_where_it_listens "
        "e2e/test_list_changed.py::test_a_client_that_has_seen_everything_is_left_in_peace "
        "server/test_changes.py::test_several_changes_at_once_are_told_once "
        "e2e/test_watched_through_gateways.py::"
        "test_who_watches_and_then_calls_hears_of_what_its_calls_change "
        "server/test_own_processes.py::"
        "test_what_a_clients_process_lists_anew_is_seen_and_announced_to_that_client_alone "
        "server/test_own_processes.py::"
        "test_a_client_keeps_the_list_of_its_process_when_that_of_the_first_changes "
        "server/test_own_processes.py::test_who_has_no_process_any_more_sees_what_all_see",
    ),
    _rule(
        "CHG-2",
        "A stateless upstream is listened to, and a stream that ended is opened again and the list read again.",
        "upstreams/transports/connection upstreams/upstream upstreams/calls/subscriptions",
        "upstreams/test_stdio_upstreams.py::"
        "test_a_tool_that_appears_is_listed_after_the_upstream_says_so "
        "server/test_watched_resources.py::"
        "test_a_lost_change_stream_is_reopened_and_the_lists_are_read_again "
        "server/test_watched_resources.py::"
        "test_a_new_process_of_the_upstream_is_asked_again_for_what_is_watched",
    ),
    _rule(
        "CHG-3",
        "A stateless client is told exactly what it listens to, an older one in its own way, from one source.",
        "server/change_notifications server/handlers/resources",
        "server/test_changes.py::test_listen_streams_are_kept_apart_by_principal_too "
        "server/test_changes.py::test_tools_and_resources_are_told_to_whom_each_concerns "
        "server/handlers/test_resources.py::test_a_2026_client_hears_of_what_it_listens_to "
        "server/handlers/test_resources.py::"
        "test_a_handshake_client_hears_of_what_it_subscribed_to_and_of_nothing_else "
        "server/test_watched_resources.py::"
        "test_an_upstream_is_asked_once_for_all_who_watch_and_told_when_nobody_does "
        "e2e/test_watched_over_http.py::test_frames_of_a_change_stream_name_it_and_what_it_tells_of",
    ),
    _rule(
        "CHG-4",
        "Who watches a resource of an upstream is counted; the upstream is asked once, in its own way.",
        "upstreams/calls/subscriptions upstreams/calls/watches server/handlers/resources",
        "server/test_watched_resources.py::"
        "test_an_upstream_is_asked_once_for_all_who_watch_and_told_when_nobody_does "
        "server/test_own_processes.py::"
        "test_what_a_client_watches_is_watched_in_its_own_process_and_told_to_it_alone "
        "server/test_own_processes.py::"
        "test_a_stateless_client_hears_on_its_stream_of_what_its_own_process_says "
        "server/test_watched_resources.py::test_one_who_changes_his_mind_is_unsubscribed_upstream "
        "server/test_watched_resources.py::"
        "test_who_is_not_told_by_the_upstream_hears_so_when_subscribing "
        "e2e/test_watched_through_gateways.py::"
        "test_who_watches_and_then_calls_hears_of_what_its_calls_change",
    ),
    _rule(
        "CHG-5",
        "A merged list stays fresh no longer than its shortest part, and is private where it depends on the client.",
        "upstreams/listing/paging catalog/resource_catalog server/handlers/resource_lists server/adapter",
        "server/test_resource_requests.py::test_a_list_stays_fresh_as_long_as_its_shortest_part_and_is_the_clients_own",
    ),
    _rule(
        "SCH-1",
        "What clients see of a schema is worked out the same way each time, for their dialect; the original is kept, "
        "and every rewrite can be listed.",
        "catalog/schemas/portable catalog/catalog cli/inspect",
        "catalog/schemas/test_portable_properties.py::test_rewriting_twice_is_rewriting_once "
        "catalog/schemas/test_shown_tools.py::"
        "test_what_the_default_dialect_has_no_quarrel_with_is_the_very_same_object "
        "catalog/schemas/test_shown_tools.py::"
        "test_a_catalog_lists_in_its_dialect_and_names_every_rewrite "
        "cli/test_inspect.py::test_strict_lists_every_rewrite_and_fails_with_6",
    ),
    _rule(
        "SCH-2",
        "The root becomes one plain object, with lost rules told in words, and each dialect gets what its API takes.",
        "catalog/schemas/root_schema catalog/schemas/subschemas catalog/schemas/dialects "
        "catalog/schemas/references catalog/schemas/parameter_names",
        "catalog/schemas/test_portable_properties.py::"
        "test_the_root_is_one_plain_object_and_arrays_have_items "
        "catalog/schemas/test_portable_properties.py::"
        "test_what_fitted_still_fits_and_comes_back_under_the_names_it_had "
        "catalog/schemas/test_shown_tools.py::"
        "test_a_choice_at_the_root_becomes_one_object_and_is_told_in_words "
        "catalog/schemas/test_shown_tools.py::"
        "test_gemini_gets_references_followed_one_type_each_and_enums_of_texts "
        "catalog/schemas/test_shown_tools.py::"
        "test_refused_parameter_names_are_renamed_and_mapped_back_at_every_depth",
    ),
    _rule(
        "SCH-3",
        "An output schema that is no object is kept from older clients; a hopeless tool is rejected alone.",
        "catalog/schemas/portable upstreams/listing/entry_validation server/adapter",
        "catalog/schemas/test_shown_tools.py::test_a_hopeless_tool_is_rejected_alone "
        "catalog/schemas/test_shown_tools.py::"
        "test_an_output_that_is_no_object_is_kept_from_older_clients_only "
        "upstreams/test_stdio_upstreams.py::test_a_broken_tool_is_rejected_alone",
    ),
    _rule(
        "SCH-4",
        "Schemas have bounds in size, depth and parts; nothing is fetched for one, and checking ends in time.",
        "catalog/schemas/portable catalog/schemas/references catalog/schemas/bounded_schema "
        "upstreams/listing/entry_validation",
        "catalog/schemas/test_portable_properties.py::test_nothing_expands_without_end "
        "catalog/schemas/test_shown_tools.py::"
        "test_a_schema_that_comes_back_to_itself_is_no_expansion_without_end "
        "upstreams/test_hostile_upstreams.py::test_up_25_a_schema_thousands_deep_is_rejected "
        "upstreams/calls/test_output_check.py::"
        "test_a_schema_we_cannot_check_against_is_named_and_never_the_clients_problem "
        "upstreams/calls/test_output_check.py::"
        "test_a_pattern_that_would_run_for_years_does_not_hold_up_anybody",
    ),
    _rule(
        "RSK-1",
        "What a tool claims about itself gives it a class: reading low, destroying critical, anything else high.",
        "upstreams/listing/proxy_tool",
        "upstreams/listing/test_risk.py::test_the_claimed_class_of_all_nine_hint_pairs",
    ),
    _rule(
        "RSK-2",
        "A claim is not believed against a name or a field that says otherwise; only you can lower a risk.",
        "upstreams/listing/proxy_tool",
        "upstreams/listing/test_risk.py::test_a_destructive_name_outweighs_a_read_only_claim "
        "upstreams/listing/test_risk.py::"
        "test_a_field_for_code_in_a_branch_of_the_root_gives_a_tool_away_too "
        "upstreams/listing/test_risk.py::test_the_operator_may_vouch_for_a_server",
        waived="2026-11-22: what a tool was seen to do is not taken into account; only claim, name and schema are. The "
        "wire hardly shows it: a result says what the server likes, and a notice of change during a call may be of "
        "somebody else's doing. As no claim lets a call through unasked (RSK-3), nothing is allowed for want of it.",
    ),
    _rule(
        "RSK-3",
        "No claim lets a call through unasked: only five reading tools, your rules and upstreams you vouch for do.",
        "calls/permissions/mode upstreams/listing/proxy_tool calls/meta_call",
        "upstreams/listing/test_risk.py::"
        "test_a_claim_alone_is_never_allowed_unasked_and_its_hints_pass_as_they_came "
        "upstreams/test_hostile_upstreams.py::"
        "test_up_22_a_read_only_claim_lets_nothing_through_unless_the_operator_vouches "
        "calls/permissions/test_decide.py::"
        "test_the_five_are_allowed_in_every_mode_but_not_against_a_deny_rule",
    ),
    _rule(
        "RSK-4",
        "Hints pass as they came unless the risk is higher; then the careful value is shown, and missing ones stay "
        "missing.",
        "upstreams/listing/proxy_tool upstreams/listing/proxy_tool",
        "upstreams/listing/test_risk.py::test_a_destructive_name_outweighs_a_read_only_claim "
        "upstreams/listing/test_risk.py::test_missing_hints_stay_missing",
    ),
    _rule(
        "LIF-1",
        "An upstream starts when it is first used, or at once where its entry says so.",
        "upstreams/supervisor upstreams/upstreams",
        "upstreams/test_stdio_upstreams.py::test_known_tools_are_listed_without_starting_anything "
        "upstreams/test_stdio_upstreams.py::test_an_eager_upstream_starts_by_itself "
        "upstreams/test_resources.py::"
        "test_a_list_starts_upstreams_of_earlier_runs_that_nobody_has_called_yet",
    ),
    _rule(
        "LIF-2",
        "What was listed once is on disk, private and checked, and is listed at once by the next process; who was "
        "never "
        "seen is waited for up to 3 s.",
        "upstreams/cache/warm_catalog upstreams/cache/tool_cache",
        "upstreams/cache/test_warm_catalog.py::test_what_was_stored_is_read_back_and_private "
        "upstreams/cache/test_warm_catalog.py::"
        "test_a_file_cut_or_changed_anywhere_is_set_aside_and_can_be_replaced "
        "upstreams/test_stdio_upstreams.py::test_what_was_listed_once_is_known_to_the_next_run "
        "server/test_resource_requests.py::test_what_was_seen_once_is_listed_while_the_upstream_is_down "
        "e2e/test_bad_upstreams.py::test_the_first_list_comes_in_time_and_has_all_that_is_well",
        not_covered="The 50 ms are measured by `make bench` (start-up with 10 upstreams), not held by a test.",
    ),
    _rule(
        "LIF-3",
        "After a failure it is tried again, later each time and at random moments, and never given up.",
        "upstreams/retry_policy upstreams/supervisor",
        "upstreams/test_retry_policy.py::"
        "test_waits_double_until_the_fifth_failure_stops_the_tries_for_thirty_seconds "
        "upstreams/test_retry_policy.py::test_every_wait_is_within_bounds",
        not_covered="With full jitter a wait may be shorter than half a second.",
    ),
    _rule(
        "LIF-4",
        "After five failures in a row calls fail at once and say so, until a probe half a minute later works.",
        "upstreams/retry_policy upstreams/supervisor upstreams/calls/calls",
        "upstreams/test_stdio_upstreams.py::"
        "test_after_five_failures_calls_fail_at_once_and_a_probe_mends_it "
        "upstreams/test_retry_policy.py::test_refused_credentials_hold_tries_back_without_counting",
    ),
    _rule(
        "LIF-5",
        "A lost connection is opened again once, and what clients watch and hear goes on.",
        "upstreams/supervisor upstreams/transports/http_transport upstreams/calls/calls",
        "upstreams/test_http_upstreams.py::"
        "test_a_session_that_is_gone_is_opened_again_once_and_the_call_repeated "
        "upstreams/test_http_upstreams.py::"
        "test_after_a_restart_of_the_server_the_next_call_runs_once "
        "upstreams/test_stdio_upstreams.py::"
        "test_a_process_that_was_killed_while_idle_is_started_again_for_the_next_call "
        "server/test_watched_resources.py::"
        "test_a_new_process_of_the_upstream_is_asked_again_for_what_is_watched "
        "upstreams/test_stdio_upstreams.py::test_a_new_process_is_told_the_log_level_again",
    ),
    _rule(
        "LIF-6",
        "A call that may have run is never run again; one that provably did not is tried once more.",
        "upstreams/calls/calls upstreams/calls/attempts upstreams/faults",
        "upstreams/calls/test_calls.py::test_a_call_that_may_have_run_is_never_repeated "
        "upstreams/calls/test_calls.py::test_a_call_that_provably_never_ran_is_tried_once_more "
        "upstreams/calls/test_calls.py::test_it_is_not_tried_a_third_time "
        "upstreams/test_stdio_upstreams.py::"
        "test_a_call_during_which_the_process_died_is_not_repeated "
        "upstreams/test_stdio_upstreams.py::"
        "test_a_call_right_after_a_death_was_noticed_never_ran_and_is_tried_again "
        "upstreams/test_resources.py::"
        "test_a_read_that_always_kills_its_server_is_an_error_after_the_second_time",
    ),
    _rule(
        "LIF-7",
        "An upstream that nobody uses is ended after ten minutes, and never one that is in use.",
        "upstreams/supervisor",
        "upstreams/test_stdio_upstreams.py::test_an_idle_process_is_ended_and_its_tools_stay "
        "upstreams/test_resources.py::test_an_upstream_is_not_reaped_as_idle_during_a_read "
        "upstreams/test_stdio_upstreams.py::test_a_watched_upstream_is_not_idle_until_nobody_watches",
        not_covered="A parked call is a call in flight: it has no test of its own.",
    ),
    _rule(
        "LIF-8",
        "An upstream's processes end with it, politely and then not, and with us even if we are killed.",
        "upstreams/transports/stdio_transport processes/process_guard",
        "upstreams/test_stdio_upstreams.py::test_no_process_survives_the_end "
        "upstreams/test_hostile_upstreams.py::"
        "test_up_32_nothing_survives_not_even_a_grandchild_in_a_session_of_its_own "
        "upstreams/transports/test_orphans.py::test_an_upstream_does_not_outlive_us_being_killed "
        "e2e/test_endings.py::test_many_killed_clients_leave_no_process "
        "e2e/test_endings.py::test_goat_itself_killed_leaves_no_process",
        not_covered="Of the 1,000 killed clients 10 run with `make test`, all with `make test-all`; of goat-mcp itself "
        "a few are killed each time. Windows is not claimed.",
    ),
    _rule(
        "LIF-9",
        "When an upstream's process exits its calls fail within a second, with its status and last words.",
        "upstreams/supervisor upstreams/transports/stdio_transport upstreams/calls/calls",
        "upstreams/test_stdio_upstreams.py::"
        "test_a_call_during_which_the_process_died_is_not_repeated "
        "upstreams/test_stdio_upstreams.py::"
        "test_the_death_of_a_child_is_noticed_although_its_own_child_holds_the_pipes",
    ),
    _rule(
        "ISO-1",
        "A bad or slow upstream neither delays nor fails the others.",
        "upstreams/supervisor upstreams/upstreams upstreams/resources",
        "upstreams/test_isolation.py::"
        "test_no_call_of_a_healthy_upstream_fails_beside_a_hang_a_drip_and_crash_loops "
        "e2e/test_bad_upstreams.py::test_a_call_that_never_ends_delays_no_other "
        "upstreams/test_stdio_upstreams.py::"
        "test_a_hanging_upstream_delays_neither_the_list_nor_the_calls_of_others "
        "upstreams/test_resources.py::test_bad_neighbours_cost_a_healthy_server_nothing "
        "e2e/test_bad_upstreams.py::"
        "test_more_calls_that_never_end_than_run_at_a_time_keep_no_other_from_running "
        "chaos/test_chaos.py::"
        "test_the_healthy_ones_make_no_error_beside_all_the_bad_ones_and_nothing_grows",
        waived="2026-11-22: no call of a healthy one fails beside 29 bad ones, and memory stays flat, but the delay is "
        "over the bar of 10 %. `python -m bench.run chaos` on two processors, which 29 misbehaving processes "
        "share with us: beside bad ones the median is 1.15 to 1.35 times that beside quiet ones (2.28 to 3.07 ms "
        "in the last run), the 95th percentile 2.0 to 2.9 times (5.3 to 15 ms). What others still "
        "wait for: a large answer, which is parsed in one go (0.1 to 0.5 s for 10 MB, design 0008), and an answer "
        "of many blocks that are no texts, which is checked whole.",
    ),
    _rule(
        "ISO-2",
        "Each upstream runs 16 calls at a time and lets 64 wait; more are refused at once. A call whose client is "
        "asked something leaves its place to others until the answer is there; a cancelled one does not count.",
        "upstreams/calls/upstream_limiter upstreams/calls/calls",
        "upstreams/test_stdio_upstreams.py::"
        "test_too_many_calls_wait_and_far_too_many_are_refused_at_once "
        "upstreams/test_resources.py::test_reads_that_hang_leave_most_places_to_tool_calls "
        "upstreams/calls/test_upstream_limiter.py::"
        "test_a_client_that_never_answers_keeps_nobody_else_from_an_upstream "
        "upstreams/calls/test_upstream_limiter.py::"
        "test_calls_that_were_cancelled_while_they_waited_are_not_counted_as_waiting",
    ),
    _rule(
        "ISO-3",
        "Frames, lists, texts and notices have bounds, and junk on an upstream's output does no harm.",
        "upstreams/transports/frames upstreams/listing/paging upstreams/transports/child_pipes",
        "upstreams/transports/test_frames.py::"
        "test_a_frame_over_the_limit_fails_the_request_it_answers "
        "upstreams/transports/test_frames.py::test_what_is_no_message_is_counted_and_dropped "
        "upstreams/test_hostile_upstreams.py::test_up_07_a_line_of_500_mb_is_never_held "
        "upstreams/test_hostile_upstreams.py::test_up_10_ten_thousand_blocks_are_cut_with_a_notice "
        "upstreams/test_stdio_upstreams.py::"
        "test_garbage_on_stdout_is_counted_and_stderr_is_kept_to_its_end",
    ),
    _rule(
        "ISO-4",
        "An upstream that is down keeps its tools in the list, and calls say why they fail.",
        "upstreams/cache/tool_cache upstreams/cache/offering_cache upstreams/diagnosis",
        "upstreams/test_http_upstreams.py::"
        "test_a_server_that_is_down_says_so_and_does_not_hurt_the_tools_that_are_listed "
        "server/test_resource_requests.py::test_what_was_seen_once_is_listed_while_the_upstream_is_down",
    ),
    _rule(
        "ISO-5",
        "An upstream sees a few harmless variables and those of its entry, none of ours.",
        "upstreams/transports/stdio_transport",
        "upstreams/test_stdio_upstreams.py::test_a_child_sees_only_allowed_and_declared_variables "
        "upstreams/test_hostile_upstreams.py::"
        "test_up_30_a_child_sees_no_secret_of_ours_or_of_another",
    ),
    _rule(
        "CFG-1",
        "A file as Claude Desktop has it works as it is, and so does a manifest; a key we do not know is told and "
        "changes nothing.",
        "upstreams/config/upstream_files upstreams/config/entry_parser manifests/kinds",
        "upstreams/config/test_upstream_files.py::test_a_claude_desktop_file_loads_as_it_is "
        "upstreams/config/test_upstream_files.py::"
        "test_an_unknown_key_is_reported_and_the_entry_works "
        "upstreams/config/test_upstream_files.py::test_our_own_keys_are_read "
        "cli/hosts/test_golden.py::test_what_is_taken_over_is_read_without_a_word "
        "manifests/test_gateway_over_manifests.py::"
        "test_a_declared_upstream_is_one_of_the_gateways_and_is_hot "
        "manifests/test_gateway_over_manifests.py::"
        "test_a_broken_declared_upstream_is_a_problem_like_one_of_a_file",
    ),
    _rule(
        "CFG-2",
        "The servers of other hosts move behind goat-mcp with one command, after a look at what would change, and "
        "back byte for byte.",
        "cli/hosts cli/import_servers cli/eject",
        "cli/hosts/test_golden.py::test_each_hosts_notation_becomes_ours "
        "cli/hosts/test_moving.py::test_every_hosts_file_keeps_the_rest_and_comes_back "
        "cli/hosts/test_moving.py::test_whatever_is_in_it_a_moved_file_comes_back_byte_for_byte "
        "cli/hosts/test_translate.py::test_only_goat_mcp_is_taken_for_goat_mcp "
        "cli/test_import.py::test_a_dry_run_shows_everything_and_writes_nothing "
        "cli/test_import.py::test_eject_puts_the_bytes_back "
        "cli/hosts/test_golden.py::test_every_host_that_the_contract_names_has_a_golden_file",
    ),
    _rule(
        "CFG-3",
        "Variables, keyring and files give an entry its secrets when it starts; their values are in no log, status, "
        "cache or lock.",
        "state/secret_references core/substitution core/redaction",
        "upstreams/config/test_upstream_files.py::test_variables_are_replaced_and_defaults_stand_in "
        "upstreams/config/test_upstream_files.py::"
        "test_a_broken_entry_fails_alone_and_names_key_value_and_remedy "
        "upstreams/config/test_upstream_files.py::"
        "test_secret_values_are_not_part_of_the_fingerprint_and_launches_are "
        "state/test_secret_references.py::test_the_systems_keyring_gives_a_users_secret_of_a_service "
        "e2e/test_canaries.py::test_R_SECRET_2_no_output_holds_a_secret "
        "upstreams/oauth/test_logins.py::"
        "test_no_token_code_or_secret_is_in_any_log_status_error_or_stored_catalog",
    ),
    _rule(
        "CFG-4",
        "A changed file counts without a restart: untouched upstreams keep their process and calls, and a broken "
        "file changes nothing.",
        "upstreams/upstreams upstreams/config/upstream_files gateway/gateway",
        "upstreams/config/test_reload.py::"
        "test_an_untouched_upstream_keeps_its_process_and_the_call_in_flight_when_its_neighbours_change "
        "upstreams/config/test_reload.py::"
        "test_a_call_in_flight_of_one_that_changes_or_goes_is_let_finish_and_new_ones_do_not_reach_it "
        "upstreams/config/test_reload.py::"
        "test_a_call_that_does_not_end_holds_up_the_end_for_a_bounded_time "
        "upstreams/config/test_reload.py::"
        "test_a_changed_file_is_read_again_and_a_broken_one_is_reported_and_changes_nothing",
    ),
    _rule(
        "CFG-5",
        "A project's file starts nothing until you trusted its very content; before that it may only deny.",
        "state/trust settings/settings",
        "settings/test_project_settings.py::"
        "test_pr_30_an_untrusted_file_only_denies_and_says_how_to_trust_it "
        "settings/test_project_settings.py::test_a_change_of_a_file_that_it_names_ends_the_trust "
        "cli/test_trust.py::test_pr_30_in_a_hostile_clone_nothing_runs_and_the_user_is_told "
        "cli/test_trust.py::test_once_trusted_it_runs_and_after_an_edit_no_more",
    ),
    _rule(
        "PRF-1",
        "A profile narrows what a client sees and may do.",
        "catalog/filter gateway/build/tools catalog/catalog server/caller_identity "
        "server/http/token gateway/build/declared_tools",
        "e2e/test_profiles.py::"
        "test_a_profile_that_is_declared_while_it_runs_has_its_path_and_narrows_as_it_changes "
        "e2e/test_profiles.py::"
        "test_a_token_leaves_no_more_than_its_profile_whatever_path_or_name_is_used "
        "e2e/test_profiles.py::test_a_process_with_a_profile_serves_nothing_else "
        "e2e/test_profile_catalogs.py::"
        "test_a_profile_shows_schemas_in_its_dialect_and_its_calls_are_those_of_everybody "
        "e2e/test_profile_catalogs.py::"
        "test_a_profiles_budget_decides_whether_tools_of_servers_are_listed_or_searched_for",
    ),
    _rule(
        "PRF-2",
        "What is hidden cannot be called, found or completed either.",
        "catalog/catalog catalog/search catalog/resource_catalog",
        "server/test_deferred_tools.py::"
        "test_PRF_2_a_hidden_tool_is_neither_found_nor_described_nor_called_through "
        "catalog/test_catalog.py::test_a_hidden_tool_is_said_to_exist "
        "server/test_resource_requests.py::test_a_denied_server_has_nothing_to_list_read_or_complete "
        "e2e/test_profiles.py::test_what_a_hidden_server_offers_beside_tools_is_hidden_too",
    ),
    _rule(
        "WSP-1",
        "Clients share a connection to an upstream where everything it depends on is equal, and never otherwise.",
        "upstreams/connection_pool upstreams/transports/callers",
        "upstreams/test_connection_pool.py::"
        "test_sessions_of_a_principal_share_a_process_and_principals_never_do "
        "upstreams/test_connection_pool.py::"
        "test_where_the_entry_says_so_each_session_of_older_clients_has_its_own "
        "e2e/test_upstreams_that_ask.py::test_two_clients_of_one_server_are_each_asked_their_own "
        "upstreams/test_connection_pool.py::"
        "test_who_has_no_connection_gets_one_although_a_few_have_taken_all "
        "upstreams/test_connection_pool.py::test_an_unused_connection_is_taken_from_whoever_has_most "
        "e2e/test_upstreams_that_ask.py::"
        "test_clients_of_two_projects_have_an_upstream_each_that_works_in_theirs",
        not_covered="The workspace keeps processes apart where a server works in it: its entry uses `${workspace}`, or "
        "has no `cwd`. Others do not depend on it.",
    ),
    _rule(
        "WSP-2",
        "Directory and roots of an upstream are those of the calling client; where one is needed and unknown it is "
        "an error.",
        "upstreams/connection_pool upstreams/config/entry server/client_roots",
        "e2e/test_upstreams_that_ask.py::"
        "test_clients_of_two_projects_have_an_upstream_each_that_works_in_theirs "
        "e2e/test_upstreams_that_ask.py::"
        "test_an_entry_without_a_folder_works_in_that_of_the_client_over_http_too "
        "e2e/test_upstreams_that_ask.py::"
        "test_an_upstream_that_needs_a_workspace_does_not_start_without_one e2e/test_late_roots.py::"
        "test_servers_are_started_in_the_clients_folder_as_soon_as_it_is_known "
        "upstreams/test_late_workspace.py::"
        "test_what_waits_for_a_workspace_is_started_when_there_is_one_and_not_after_a_pause "
        "upstreams/test_connection_pool.py::"
        "test_a_process_in_use_is_moved_when_its_calls_are_done_and_those_that_come_meanwhile_have_another",
        not_covered="Over HTTP our own tools have one workspace for all clients (design 0004): their roots count for "
        "upstreams only, and where an entry does not say `${workspace}`, for those of handshake clients: others would "
        "have to be asked with each call.",
    ),
    _rule(
        "DEF-1",
        "A catalog within the token budget is listed whole; above it only our own tools are, and the rest is found.",
        "catalog/filter catalog/catalog",
        "catalog/test_deferred_listing.py::"
        "test_DEF_1_at_the_budget_all_is_listed_and_one_token_above_only_our_own "
        "catalog/test_deferred_listing.py::test_DEF_1_the_budget_is_of_what_this_client_sees "
        "server/test_deferred_tools.py::test_DEF_1_all_tools_are_listed_where_they_fit_the_budget",
    ),
    _rule(
        "DEF-2",
        "Four tools search, describe and call what is not listed; the reading one refuses all but what you vouch for.",
        "gateway/build/builtin_tools tools/search_tools tools/describe_tool tools/call_tool tools/call_tool_readonly",
        "server/test_deferred_tools.py::"
        "test_DEF_2_tools_that_are_not_listed_are_found_described_and_called "
        "server/test_deferred_tools.py::"
        "test_DEF_2_the_read_only_call_refuses_what_only_the_server_calls_read_only "
        "server/test_deferred_tools.py::"
        "test_DEF_2_a_tool_that_came_after_the_clients_list_is_reached",
    ),
    _rule(
        "DEF-3",
        "A call through is the target's own call, with its rules, record, limits and unchanged result.",
        "calls/meta_call calls/admission calls/pipeline",
        "server/test_deferred_tools.py::test_DEF_3_*",
    ),
    _rule(
        "DEF-4",
        "Search ranks by words of servers, names, titles, descriptions and parameters, and finds what people ask for, "
        "mistyped or cut short.",
        "catalog/search catalog/search_index catalog/search_words catalog/search_spelling",
        "catalog/test_search_index.py::test_DEF_4_*",
    ),
    _rule(
        "SPL-1",
        "Text that is too long is kept in a file that its caller alone can open; the result shows its ends and where "
        "it is.",
        "calls/result_limits state/spill",
        "calls/test_result_limits.py::test_SPL_1_*",
    ),
    _rule(
        "SPL-2",
        "Promised structured content is whole, or the call is an error.",
        "calls/result_limits",
        "calls/test_result_limits.py::test_SPL_2_*",
    ),
    _rule(
        "AUT-1",
        "Logins follow OAuth as the SDK does; tokens lie in the keyring or a private file, and a client's own token is "
        "never passed on.",
        "upstreams/oauth upstreams/transports/http_transport upstreams/oauth/logins",
        "upstreams/oauth/test_logins.py::test_after_a_login_every_request_carries_our_token "
        "upstreams/oauth/test_logins.py::test_tokens_are_kept_in_the_keyring_and_not_on_disk "
        "upstreams/oauth/test_logins.py::"
        "test_without_a_keyring_tokens_are_in_a_file_of_ours_that_the_list_names "
        "upstreams/oauth/test_refused_logins.py::test_metadata_of_another_resource_is_refused "
        "conformance/test_client_scenarios.py::test_a_client_scenario_passes",
    ),
    _rule(
        "AUT-2",
        "Of many processes one renews a token and the others take it over; nobody deletes what another stored.",
        "upstreams/oauth/upstream_login",
        "upstreams/oauth/test_renewal.py::"
        "test_eight_processes_renew_a_rotating_token_once_and_all_their_calls_work "
        "upstreams/oauth/test_renewal.py::"
        "test_a_loser_adopts_what_the_winner_stored_and_deletes_nothing",
    ),
    _rule(
        "AUT-3",
        "You log in by a command, or at a page that your client shows you while the call waits; no browser opens "
        "unasked, and an error names the command.",
        "cli/auth upstreams/oauth upstreams/oauth/pending_login upstreams/calls/login_elicitation "
        "upstreams/calls/login_elicitation upstreams/calls/attempts",
        "upstreams/oauth/test_logins.py::"
        "test_an_upstream_that_wants_a_login_says_so_and_its_calls_name_the_command "
        "upstreams/oauth/test_logins.py::test_somebody_who_is_there_logs_in_while_the_call_waits "
        "server/test_offered_logins.py::test_* e2e/test_logging_in.py::test_* "
        "upstreams/calls/test_multi_round.py::test_* "
        "cli/test_auth.py::test_logging_in_with_a_browser_listing_and_logging_out",
        not_covered="A login serves all clients of one goat-mcp. So only the operator's own are shown a page: over "
        "stdio, or with the server's own token. Holders of a profile's token, and clients of a server without tokens, "
        "are told the command.",
    ),
    _rule(
        "PIN-1",
        "What an upstream offers is pinned at first sight; a definition that changed waits for your approval and "
        "cannot be called until then.",
        "upstreams/pinning/pins upstreams/pinning/pin_gate upstreams/pinning/pinned_resources "
        "upstreams/pinning/pin_gate upstreams/pinning/pinned_resources "
        "upstreams/pinning/pin_lock cli/lock",
        "upstreams/pinning/test_pinned_resources.py::"
        "test_a_changed_one_stays_listed_as_pinned_and_is_refused_before_it_is_listed_again "
        "upstreams/pinning/test_pinned_resources.py::"
        "test_an_approved_change_is_shown_and_sent_without_a_restart "
        "upstreams/pinning/test_pinned_resources.py::"
        "test_strict_rejects_what_is_seen_for_the_first_time_until_it_is_approved "
        "upstreams/pinning/test_pinned_upstreams.py::"
        "test_a_rug_pull_between_list_and_call_is_not_called "
        "upstreams/pinning/test_pinned_upstreams.py::test_one_character_anywhere_is_a_change "
        "upstreams/pinning/test_pinned_upstreams.py::"
        "test_pm_08_a_tool_added_later_is_pinned_and_reported_and_under_strict_waits "
        "upstreams/pinning/test_pinned_upstreams.py::test_the_lock_has_hashes_and_risks_and_no_texts "
        "upstreams/pinning/test_pinned_instructions.py::"
        "test_instructions_are_pinned_at_first_sight_and_a_change_is_told_and_refuses_nothing "
        "cli/test_lock.py::test_a_change_is_refused_shown_escaped_and_approved_by_its_hash",
    ),
    _rule(
        "PIN-2",
        "Checking the lock changes nothing and has an exit code; a launch that names no version is told.",
        "cli/lock gateway/status/doctor upstreams/pinning/launch_fingerprint",
        "cli/test_lock.py::test_check_compares_and_writes_nothing "
        "cli/test_lock.py::test_a_launch_that_names_no_version_is_told "
        "upstreams/pinning/test_launch_fingerprint.py::test_a_launch_that_names_no_version_is_told "
        "upstreams/pinning/test_pinned_resources.py::"
        "test_the_lock_command_checks_shows_and_approves_prompts_and_templates",
        not_covered="Prompts and templates are listed once somebody asks: until then the check does not miss them.",
    ),
    _rule(
        "CHN-1",
        "goat-mcp works behind goat-mcp, in every pair of eras.",
        "core/names server/adapter upstreams/envelope",
        "e2e/test_gateway_chains.py::test_a_tool_behind_two_gateways_is_called_in_every_pair_of_eras "
        "core/test_names.py::test_a_name_that_was_put_together_comes_apart_the_same",
    ),
    _rule(
        "CHN-2",
        "A circle of gateways is noticed, named and ended; the rest goes on.",
        "server/adapter core/gateway_chain upstreams/listing/paging",
        "e2e/test_gateway_chains.py::"
        "test_a_gateway_that_is_its_own_upstream_notices_and_serves_the_rest "
        "e2e/test_gateway_chains.py::"
        "test_two_gateways_that_are_each_others_upstreams_show_each_other_once "
        "e2e/test_gateway_chains.py::"
        "test_a_call_that_has_come_round_or_passed_eight_gateways_is_not_passed_on",
    ),
    _rule(
        "OBS-1",
        "Status tells of every upstream how it does, why, since when, what it offers and what is rejected.",
        "gateway/status/gateway_status gateway/status/gateway_status gateway/status/gateway_status cli/status",
        "e2e/test_reasons_in_status.py::"
        "test_whatever_is_wrong_with_upstreams_has_its_reason_in_status_and_the_others_work "
        "cli/test_status.py::"
        "test_where_none_runs_the_configured_upstreams_are_shown_with_what_is_known_of_them "
        "gateway/status/test_process_files.py::test_a_secret_of_an_upstream_is_not_in_the_file",
    ),
    _rule(
        "OBS-2",
        "Doctor calls no tool; what it finds has an id, a detail and a remedy, and the exit code says the kind.",
        "gateway/status/doctor gateway/status/doctor gateway/status/doctor gateway/status/doctor cli/doctor",
        "cli/test_doctor.py::test_nothing_is_found_where_nothing_is_wrong_and_no_tool_is_called "
        "cli/test_doctor.py::test_each_trouble_has_its_finding_its_remedy_and_its_exit_status",
    ),
)
