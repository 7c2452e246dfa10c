"""The security and reliability rules: where each is kept, which tests show it, and what is not covered.

A literal table that a reviewer can read; docs/security.md is made of it, and `test_security_rules` holds every module
and test it names against the tree.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SecurityRule:
    """One rule. `kept_in` are modules below goat_mcp/, `shown_by` are `FILE::TEST`, below tests/."""

    id: str
    promise: str
    kept_in: tuple[str, ...]
    shown_by: tuple[str, ...]
    not_covered: str = ""


def _rule(id: str, promise: str, kept_in: str, shown_by: str, not_covered: str = "") -> SecurityRule:
    return SecurityRule(id, promise, tuple(kept_in.split()), tuple(shown_by.split()), not_covered)


SECURITY_RULES: tuple[SecurityRule, ...] = (
    _rule(
        "R-FILE-1",
        "Paths are checked by opening them below a pinned directory, and that descriptor is used from then on.",
        "files/workspace/beneath",
        "files/workspace/test_confinement.py::"
        "test_reads_leak_nothing_while_something_is_swapped_with_a_link "
        "contract/test_file_cases.py::test_fs_07_no_read_wins_the_race_against_a_link",
        "`openat2` is Linux; elsewhere R-FILE-2 holds.",
    ),
    _rule(
        "R-FILE-2",
        "Without `openat2` each part of a path is opened without following links.",
        "files/workspace/beneath",
        "files/workspace/test_confinement.py::"
        "test_both_ways_of_opening_agree_and_mean_what_the_system_means "
        "files/workspace/test_macos_jail.py::test_what_is_moved_out_while_it_is_opened_is_not_read "
        "contract/test_file_cases.py::test_a_read_that_leads_out_is_refused",
        "Windows: links are refused, a race remains.",
    ),
    _rule(
        "R-FILE-3",
        "Devices, pipes, sockets and the kernel's folders are refused at once.",
        "files/workspace/workspace files/workspace/roots",
        "files/workspace/test_confinement.py::test_what_is_no_regular_file_answers_at_once "
        "contract/test_file_cases.py::"
        "test_what_is_no_regular_file_is_refused_at_once_and_holds_up_nobody",
    ),
    _rule(
        "R-FILE-4",
        "Paths are literal: no `~`, variables, percent signs or URLs.",
        "files/workspace/workspace",
        "contract/test_file_cases.py::test_a_read_that_leads_out_is_refused",
    ),
    _rule(
        "R-FILE-5",
        "A deny rule holds for the path asked for and for the file that was opened, by whatever name, and by every "
        "spelling that the file system takes for that name.",
        "calls/permissions/rule_set calls/permissions/patterns files/workspace/workspace files/search/engine",
        "calls/permissions/test_path_rules_in_use.py::"
        "test_r_file_5_a_file_that_a_rule_denies_is_out_of_reach_by_any_name "
        "calls/permissions/test_path_rules_in_use.py::"
        "test_the_rule_holds_for_the_file_that_was_opened_while_a_link_changes_places "
        "files/workspace/test_folded_names.py::test_a_denied_file_is_denied_by_every_spelling",
        "Without a sandbox Bash reads what your account reads, but for commands that plainly name such a file. A hard "
        "link is another file. Landlock does not hide files. What a file system takes for one name is found out for "
        "each root, not for each directory.",
    ),
    _rule(
        "R-FILE-6",
        "New files and folders are confined like old ones; a dangling link creates nothing.",
        "files/workspace/beneath files/workspace/writing",
        "files/workspace/test_confinement.py::test_nothing_is_written_or_created_outside "
        "contract/test_file_cases.py::test_a_write_that_leads_out_is_refused_and_creates_nothing",
    ),
    _rule(
        "R-FILE-7",
        "A write is whole or not at all, and the old bytes are kept for undo.",
        "files/workspace/writing files/workspace/temp_files files/changes/journal",
        "files/workspace/test_interrupted_writes.py::"
        "test_a_killed_writer_leaves_a_whole_file_and_the_next_start_clears_up "
        "files/changes/test_interrupted_changes.py::"
        "test_a_killed_writer_leaves_a_whole_file_and_a_journal_that_brings_back_the_first_one",
        "Hard links stay readable. A file that can only be written in place is not atomic. Power loss was not tested.",
    ),
    _rule(
        "R-FILE-8",
        "A change wants an earlier read; what others wrote since is not lost.",
        "files/editing/read_state files/workspace/locks",
        "contract/test_file_cases.py::test_fs_35_an_edit_leaves_what_another_wrote_since "
        "contract/test_file_cases.py::test_fs_36_of_fifty_edits_at_a_time_none_is_lost",
        "Other programs ignore our locks: between the last check and the rename a small gap remains.",
    ),
    _rule(
        "R-FILE-9",
        "What git, editors, agents and shells obey is asked about in every mode; an exact rule of yours lifts it.",
        "files/workspace/protected calls/permissions/permission",
        "contract/test_file_cases.py::test_what_others_obey_is_never_changed_unasked "
        "calls/permissions/test_remembering.py::"
        "test_the_settings_rule_for_that_very_path_lifts_its_protection",
        "Bash: read-only in bubblewrap; under Landlock it is reported afterwards; without a sandbox it is asked about "
        "as far as the words of a command say what it writes.",
    ),
    _rule(
        "R-FILE-9b",
        "One table of names, each with the program that obeys it, serves file tools, commands and the sandbox; below "
        "`.git` a sandboxed command makes what a commit needs, and all else that is new is set aside.",
        "files/workspace/protected "
        "calls/permissions/permission calls/permissions/command_files commands/sandbox/git_directories "
        "commands/sandbox/placeholders",
        "files/workspace/test_protected.py::test_f13_07_* "
        "calls/permissions/test_protected_paths_in_use.py::test_f13_07_* "
        "commands/sandbox/test_git_state.py::test_f13_06_* "
        "commands/sandbox/test_git_state.py::test_everyday_git_works*",
        "In the sandbox: new protected names outside git directories, but for four at the top; new repositories; what "
        "git outside does while the command runs.",
    ),
    _rule(
        "R-FILE-10",
        "A search follows no link out, survives loops, ends in time, and takes nothing for an option.",
        "files/search/ripgrep files/search/engine processes/linux_landlock",
        "contract/test_file_cases.py::test_fs_31_a_search_follows_no_link_out "
        "contract/test_file_cases.py::test_fs_32_what_looks_like_an_option_is_none "
        "contract/test_file_cases.py::test_a_search_survives_links_in_a_circle",
    ),
    _rule(
        "R-FILE-11",
        "Output is bounded, valid text, and shows what would hide or reorder it.",
        "files/documents/visible_text files/documents/rendering",
        "contract/test_file_cases.py::test_fs_16_a_sparse_file_of_20_gib_costs_no_memory "
        "contract/test_file_cases.py::test_fs_42_hostile_bytes_are_shown_and_not_performed",
    ),
    _rule(
        "R-SHELL-1",
        "Reading a command only chooses between running it and asking; the sandbox is what holds.",
        "calls/permissions/decide commands/sandbox/sandbox",
        "tools/test_bash_sandbox.py::test_auto_without_any* "
        "commands/sandbox/test_when_there_is_one.py::"
        "test_it_is_wanted_where_commands_may_run_unasked",
    ),
    _rule(
        "R-SHELL-2",
        "Only a script of plain, literal commands can pass by rules; all else is asked about.",
        "commands/shell/plain_commands commands/shell/syntax_tree",
        "commands/shell/test_against_real_bash.py::test_r_shell_2_* commands/shell/test_plain.py::test_*",
    ),
    _rule(
        "R-SHELL-3",
        "Rules are held against whole words; a longer word or another path is not what was allowed.",
        "commands/shell/script_rules commands/shell/script_rules",
        "commands/shell/test_pattern.py::test_a_longer_word_another_place_or_a_path_does_not_match",
    ),
    _rule(
        "R-SHELL-4",
        "Options that run, write or lead elsewhere are asked about; reading git commands run nothing of a repository.",
        "commands/shell/options/unsafe commands/git_environment commands/git_hardening",
        "commands/shell/test_options.py::test_* tools/test_bash_git.py::test_* "
        "commands/shell/test_sed_against_real_sed.py::test_r_shell_4_*",
        "git commands that write; what a program we have no table for does with plain words.",
    ),
    _rule(
        "R-SHELL-4b",
        "Safety checks look at parsed arguments; if git does not list all that a repository configures, its reading "
        "commands are refused.",
        "commands/shell/options/table commands/git_environment commands/git_hardening",
        "tools/test_git_runs_nothing.py::test_f13_* commands/shell/test_against_real_programs.py::test_f13_04_*",
        "git after a `cd`, or with `-C`, that a person allows; scripts that are no plain commands; git in programs and "
        "scripts that a rule allows; what the user's own configuration of git runs.",
    ),
    _rule(
        "R-SHELL-5",
        "Deny rules find a program wherever its name stands, and what cannot be read is refused in every mode.",
        "commands/shell/command_extraction commands/shell/mentions commands/shell/data_words "
        "commands/shell/script_rules calls/permissions/decide",
        "calls/permissions/test_rules.py::"
        "test_where_commands_are_denied_what_cannot_be_read_is_refused_in_every_mode "
        "commands/shell/test_command_extraction.py::test_* commands/shell/test_mentions.py::test_*",
        "Best effort: not a copy or a link of a program under another name, a mount or another PATH, nor what an "
        "interpreter's own code, a script file, the project's configuration or a job for later (`crontab`) runs.",
    ),
    _rule(
        "R-SHELL-5b",
        "If a rule denies a path, each part of a command's words counts as a path, and what cannot be followed as bash "
        "would is refused; an ask rule asks.",
        "commands/shell/script_files commands/shell/known_values commands/shell/file_use "
        "calls/permissions/command_files",
        "calls/permissions/test_file_rules_against_real_bash.py::test_f13_08_* "
        "calls/permissions/test_file_rules_against_real_bash.py::"
        "test_everyday_commands_run_beside_rules_about_files",
        "What no word shows: an interpreter's code that puts a name together, script files, builds, lists of names "
        "that a program we do not know reads, hard links that were there before, mounts, what git has stored.",
    ),
    _rule(
        "R-SHELL-6",
        "Very long commands, and those with invisible characters, never pass by rules; the work is bounded.",
        "commands/shell/script_parsing",
        "commands/shell/test_attack_cases.py::test_r_shell_6_* commands/shell/test_attack_cases.py::test_br_parse_1_*",
    ),
    _rule(
        "R-SHELL-7",
        "bash reads no start files of a repository and stands in a directory that was checked.",
        "processes/bash_invocation processes/environment",
        "tools/test_bash.py::test_r_shell_7_*",
    ),
    _rule(
        "R-PROC-1",
        "The sandbox is chosen by a real trial; `required` without one runs nothing, `auto` without one says so.",
        "commands/sandbox/sandbox tools/bash",
        "tools/test_bash_sandbox.py::test_bx_15* "
        "tools/test_bash_sandbox.py::test_a_sandbox_that_breaks_after_the_start*",
        "macOS and Windows have none: `required` fails, `auto` asks.",
    ),
    _rule(
        "R-PROC-2",
        "bubblewrap shows a command its workspace and the system's programs, and nothing else.",
        "commands/sandbox/bubblewrap commands/sandbox/bubblewrap commands/sandbox/policy",
        "commands/sandbox/test_bubblewrap_traps.py::test_git_works_in_the_workspace "
        "commands/sandbox/test_bubblewrap_traps.py::test_homes_and_the_state_directory_are_not_there",
        "Linux only.",
    ),
    _rule(
        "R-PROC-2b",
        "No file of the kernel's below /proc and /sys can be opened for writing in a sandbox, as root neither; "
        "a sandbox in which one could be is not used.",
        "commands/sandbox/bubblewrap commands/sandbox/landlock commands/sandbox/sandbox",
        "commands/sandbox/test_kernel_files.py::test_f13_01*",
        "With bubblewrap /proc is read-only as a whole, also what belongs to the command itself (`oom_score_adj`, "
        "`comm`). With Landlock the trial opens some files of each kind, and root can change modes below /sys.",
    ),
    _rule(
        "R-PROC-3",
        "Each of the ten known traps of sandboxes has its test.",
        "commands/sandbox/bubblewrap commands/sandbox/protected_paths commands/sandbox/placeholders "
        "commands/sandbox/seccomp",
        " ".join(f"commands/sandbox/test_bubblewrap_traps.py::test_trap_{number}_*" for number in range(1, 11)),
        "The filter of system calls is for x86_64 and aarch64.",
    ),
    _rule(
        "R-PROC-4",
        "Landlock, where bubblewrap cannot run: files, TCP and signals as far as the kernel's version goes.",
        "commands/sandbox/landlock commands/sandbox/linux_confined_start",
        "commands/sandbox/test_landlock.py::test_nothing_outside_is_made_changed_or_removed "
        "commands/sandbox/test_landlock.py::test_what_no_program_needs_cannot_be_read "
        "commands/sandbox/test_landlock.py::test_tcp_is_refused_by_landlock_itself",
        "No process namespace: `setsid` is found by a marker only, other processes' names are seen. Metadata outside.",
    ),
    _rule(
        "R-PROC-5",
        "A timeout, a cancel or a stop ends a command with all it started: TERM, 2 s, KILL.",
        "processes/process_tree processes/running_command",
        "tools/test_bash_sandbox.py::test_bx_02* tools/test_bash_sandbox.py::test_a_cancelled_call* "
        "processes/test_running_command.py::test_ending_a_command_ends_all_it_started "
        "processes/test_running_command.py::test_what_was_once_seen_with_a_parent_of_the_command_ends_with_it",
        "Without a sandbox a process that leaves group and environment behind may survive. Without /proc, as on "
        "macOS, processes are looked at while the command runs, at first often, then every 5 s: one that leaves its "
        "session and loses its parent between two looks survives if its environment cannot be read, as that of "
        "Apple's own programs. Upstream servers and handlers are looked at only at their end.",
    ),
    _rule(
        "R-PROC-6",
        "A call ends with its command, not with whoever holds its pipe; output is kept and shown within bounds.",
        "processes/running_command processes/output_capture",
        "tools/test_bash.py::test_* tools/test_bash_sandbox.py::test_what_a_command_leaves_running*",
    ),
    _rule(
        "R-PROC-7",
        "A command's environment is built from a short list.",
        "processes/environment commands/sandbox/bubblewrap cli/serve",
        "processes/test_environment.py::test_an_environment_is_built_from_the_list "
        "tools/test_bash_sandbox.py::test_bx_09* e2e/test_undumpable.py::test_f13_21*",
        "As root an unsandboxed command can read the server's own variables in /proc, as it can do anything. "
        "Elsewhere than on Linux nothing keeps other programs of the user from them.",
    ),
    _rule(
        "R-PROC-8",
        "File size, open files and processes have limits.",
        "processes/bash_options processes/pids_cgroup",
        "processes/test_bash_options.py::test_* processes/test_pids_cgroup.py::test_f13_20* "
        "commands/sandbox/test_bubblewrap_traps.py::test_a_fork_bomb_is_bounded*",
        "As root a cgroup limits processes; if none can be made, as in most containers, nothing does, and status says "
        "so. Ordinary users have a limit in bubblewrap only, and nobody has one on macOS, which limits no memory "
        "either. Memory and CPU limits are off unless you set them. "
        "Upstream servers, hooks and programs of manifests have none.",
    ),
    _rule(
        "R-PROC-9",
        "At most 32 background tasks, under ids that cannot be guessed and belong to their principal.",
        "commands/tasks/manager commands/tasks/records",
        "tools/test_task_output.py::test_* tools/test_bash.py::test_*",
    ),
    _rule(
        "R-NET-1",
        "One module builds the HTTP client of our own fetches.",
        "web/http/client",
        "web/http/test_client.py::test_no_other_module_builds_an_http_client",
    ),
    _rule(
        "R-NET-2",
        "A name is resolved once, every address is checked, and the checked one is dialled.",
        "web/http/resolver web/http/exchange",
        "web/http/test_client.py::"
        "test_wf_34_a_changing_resolver_is_asked_once_and_the_checked_address_is_dialled "
        "web/http/test_client.py::test_one_private_address_among_public_ones_refuses_them_all",
        "Through a proxy that you name, the proxy resolves.",
    ),
    _rule(
        "R-NET-3",
        "Only public addresses, in whatever spelling.",
        "web/http/addresses web/http/target",
        "web/http/test_addresses.py::test_any_other_address_is_not "
        "web/http/test_target.py::test_an_address_that_is_not_public_is_refused_in_every_spelling",
    ),
    _rule(
        "R-NET-4",
        "Only http and https, no user names, nothing that two parsers read differently; TLS is always checked.",
        "web/http/target web/http/client",
        "web/http/test_target.py::test_what_two_parsers_could_read_differently_is_refused "
        "web/http/test_client.py::test_nothing_can_turn_the_certificate_check_off",
    ),
    _rule(
        "R-NET-5",
        "At most five redirects, each checked; another host needs a new call.",
        "web/pages/fetching",
        "tools/test_web_fetch.py::test_wf_45_another_host_is_reported_and_not_asked "
        "tools/test_web_fetch.py::test_wf_33_a_redirect_loop_ends",
    ),
    _rule(
        "R-NET-6",
        "Proxies and passwords of the environment are not used.",
        "web/http/target",
        "web/http/test_client.py::test_wf_36_proxies_and_passwords_of_the_environment_are_not_used",
    ),
    _rule(
        "R-NET-7",
        "5 MB unpacked and 20 s in all; HTML is read in a process that can be ended.",
        "web/http/decoding web/pages/html_worker",
        "tools/test_web_fetch.py::test_wf_37_a_compression_bomb_is_too_large_and_takes_no_memory "
        "tools/test_web_fetch.py::test_wf_41_html_bombs_end_in_bounded_text",
    ),
    _rule(
        "R-NET-8",
        "A domain rule ends at a label.",
        "web/http/domains calls/permissions/rule",
        "calls/permissions/test_rules.py::test_a_domain_rule_ends_at_a_label "
        "web/http/test_domains.py::test_a_lookalike_is_not_in_it",
    ),
    _rule(
        "R-NET-9",
        "A page comes as marked data, without what a reader would not see.",
        "tools/web_fetch web/pages/html_worker",
        "web/pages/test_html_worker.py::test_what_nobody_would_see_is_left_out",
        "A model may still follow what a page says.",
    ),
    _rule(
        "R-SCHEMA-1",
        "JSON is read strictly, and what was checked is what runs.",
        "server/stdio/frame_validation server/http/body",
        "e2e/test_hostile_frames.py::test_a_hostile_frame_is_refused_in_few_words_and_the_next_one_is_answered",
    ),
    _rule(
        "R-SCHEMA-2",
        "Unknown fields are refused, in at most a kilobyte.",
        "core/arguments",
        "e2e/test_hostile_frames.py::test_pr_20_fields_we_do_not_know_are_refused_in_at_most_a_kilobyte",
    ),
    _rule(
        "R-SCHEMA-3",
        "Foreign schemas have limits, and nothing they refer to is fetched.",
        "catalog/schemas/bounded_schema",
        "upstreams/calls/test_output_check.py::test_no_schema_breaks_the_check "
        "upstreams/test_hostile_upstreams.py::test_up_25*",
    ),
    _rule(
        "R-SCHEMA-4",
        "A schema that takes forever holds up nobody.",
        "catalog/schemas/checks_in_threads upstreams/listing/input_check upstreams/calls/output_check",
        "upstreams/calls/test_output_check.py::test_a_pattern_that_would_run_for_years_does_not_hold_up_anybody "
        "upstreams/listing/test_input_check.py::"
        "test_a_schema_is_compiled_off_the_loop_and_its_patterns_end_soon",
    ),
    _rule(
        "R-SCHEMA-5",
        "Nothing but the protocol is on stdout, and no line fills the memory.",
        "server/stdio/transport",
        "e2e/test_stdout.py::test_pr_23_what_a_command_prints_does_not_reach_the_wire "
        "e2e/test_stdout.py::test_a_line_that_never_seems_to_end_is_dropped_and_does_not_fill_memory",
    ),
    _rule(
        "R-PERM-1",
        "deny beats ask beats allow beats the mode, by a pure function.",
        "calls/permissions/decide calls/permissions/rule_set",
        "calls/permissions/test_rules.py::"
        "test_deny_beats_ask_beats_allow_whatever_the_order_and_how_narrow "
        "calls/permissions/test_decide.py::test_the_table_of_modes",
    ),
    _rule(
        "R-PERM-2",
        "What was checked is what runs, whoever else holds the arguments.",
        "calls/admission core/arguments",
        "calls/test_pipeline.py::"
        "test_R_PERM_2_whoever_holds_the_arguments_changes_nothing_after_the_check "
        "calls/permissions/test_path_rules_in_use.py::"
        "test_an_alias_of_an_argument_hides_nothing_from_a_rule",
    ),
    _rule(
        "R-PERM-3",
        "What a hook rewrites is validated and decided again; hooks only tighten.",
        "calls/admission calls/hooks/stages",
        "calls/hooks/test_runner.py::test_a_rewritten_call_is_validated_and_decided_again "
        "calls/hooks/test_runner.py::test_allow_means_no_objection_and_nothing_more",
    ),
    _rule(
        "R-PERM-4",
        "An approval is for this tool, these arguments, this person; once, and not for long.",
        "server/suspended_calls state/database calls/admission calls/approvals/call_request calls/approvals/store "
        "manifests/manifest_tool",
        "server/test_travelling_approval.py::"
        "test_the_answer_may_come_to_another_process_and_counts_once "
        "server/test_travelling_approval.py::"
        "test_it_is_good_for_the_arguments_it_was_asked_about_only "
        "server/test_travelling_approval.py::test_it_expires calls/test_pipeline.py::"
        "test_R_PERM_4_a_tool_that_its_server_changed_while_the_user_was_asked_does_not_run "
        "calls/test_pipeline.py::test_R_PERM_4_a_rule_that_came_while_the_user_was_asked_holds_for_this_call "
        "manifests/test_calls_held_back.py::test_a_call_of_a_tool_that_became_another_one_is_refused "
        "manifests/test_calls_held_back.py::"
        "test_what_a_person_allowed_is_not_used_for_another_handler "
        "manifests/test_calls_held_back.py::"
        "test_an_approval_from_the_queue_is_not_used_for_another_handler "
        "calls/approvals/test_asking.py::test_an_approval_is_for_this_very_call "
        "calls/approvals/test_asking.py::test_an_approval_that_was_not_used_expires "
        "calls/approvals/test_asking.py::test_one_approval_lets_one_of_two_identical_calls_run "
        "e2e/test_approvals.py::test_of_fifty_approvals_that_two_processes_decide_at_once_each_is_decided_once",
        "Processes that take each other's answers share one state directory.",
    ),
    _rule(
        "R-PERM-4b",
        "A button in Telegram or Slack counts only if the configured account pressed it, in the configured place, on "
        "the message that was sent about this record with this digest; once, for once or a denial, and never for what "
        "the message does not show whole. One process at a time reads an account.",
        "gateway/approvals/notify/button_presses gateway/approvals/notify/message gateway/approvals/notify/notifier "
        "calls/approvals/notices web/http/websocket",
        "gateway/approvals/notify/test_telegram.py::test_* "
        "gateway/approvals/notify/test_slack.py::"
        "test_only_the_configured_person_in_the_channel_decides_and_only_by_its_own_button "
        "gateway/approvals/notify/test_a_call.py::test_* "
        "e2e/test_notified_on_a_phone.py::test_two_servers_send_each_record_once_and_share_the_answers",
        "Who has the bot's token can change what a message shows.",
    ),
    _rule(
        "R-PERM-5",
        "Nobody to ask means no; your host's dialog never stands in for an ask rule or a protected path.",
        "calls/permissions/permission",
        "calls/permissions/test_permission.py::test_who_answers_an_ask_of_the_mode "
        "calls/test_pipeline.py::test_R_PERM_5_the_record_says_who_decided",
    ),
    _rule(
        "R-PERM-6",
        "No call changes modes, rules, hooks, roots, sandbox, upstreams or the record; only you end plan mode.",
        "settings/view tools/config calls/permissions/plan_approval",
        "tools/test_config.py::test_cfg_001_security_keys_are_not_settable_and_nobody_is_asked "
        "calls/hooks/test_configured.py::test_config_shows_hooks_and_never_changes_them",
        "A command without a sandbox can do what your account can.",
    ),
    _rule(
        "R-PERM-7",
        "A broken rule stops the start, with its file and line; in a running server the rules from before stay.",
        "gateway/build/rule_loading calls/permissions/rule settings/watched_settings",
        "calls/permissions/test_rules.py::test_a_broken_rule_is_named_with_its_place "
        "gateway/build/test_rule_loading.py::test_a_broken_rule_is_told_with_its_file_and_line "
        "gateway/test_rules_again.py::test_rules_come_and_go_and_a_broken_file_leaves_them_as_they_were",
    ),
    _rule(
        "R-HOOK-1",
        "Call data reaches a hook as JSON on stdin and nowhere else; ours run without a shell.",
        "calls/hooks/runner calls/hooks/settings settings/claude",
        "calls/hooks/test_runner.py::test_a_program_gets_the_call_as_json_and_no_word_of_it_anywhere_else",
        "Windows.",
    ),
    _rule(
        "R-HOOK-2",
        "A hook of ours that fails before a call refuses it; an imported one means what it means in Claude Code.",
        "calls/hooks/answer calls/hooks/runner",
        "calls/hooks/test_runner.py::"
        "test_every_failure_before_a_call_means_what_the_kind_of_hook_says "
        "settings/claude/test_in_force.py::test_the_log_says_what_a_failing_hook_of_the_file_means",
    ),
    _rule(
        "R-HOOK-3",
        "Hooks run in a fixed order, the first no ends it, and each is on record.",
        "calls/hooks/runner calls/admission",
        "calls/hooks/test_runner.py::test_two_hooks_run_in_order_and_the_first_denial_ends_it "
        "calls/test_pipeline.py::test_the_record_of_a_decision_says_what_each_hook_said",
        "What a hook answers after a call is in the log, not in the record.",
    ),
    _rule(
        "R-UP-1",
        "No upstream delays the start, the lists or the calls of another.",
        "upstreams/supervisor",
        "upstreams/test_isolation.py::test_no_call_of_a_healthy_upstream_fails_beside_a_hang_a_drip_and_crash_loops",
    ),
    _rule(
        "R-UP-2",
        "Frames, garbage and stderr of an upstream are bounded.",
        "upstreams/transports/frames upstreams/transports/child_pipes",
        "upstreams/transports/test_frames.py::test_a_line_that_never_ends_is_not_held "
        "upstreams/test_hostile_upstreams.py::test_up_09*",
    ),
    _rule(
        "R-UP-3",
        "Only answers to pending calls count, once; lists, descriptions and results have limits.",
        "upstreams/transports/frames upstreams/transports/notifications "
        "upstreams/transports/http_transport upstreams/listing/paging "
        "upstreams/listing/entry_validation",
        "upstreams/test_floods.py::test_f13_29* "
        "upstreams/test_isolation.py::test_only_the_first_answer_to_a_pending_call_counts "
        "upstreams/test_isolation.py::"
        "test_a_list_that_grows_without_end_is_cut_at_a_size_and_says_so",
    ),
    _rule(
        "R-UP-4",
        "A dead upstream fails its calls at once and is started again with pauses; nothing runs twice.",
        "upstreams/supervisor upstreams/retry_policy",
        "upstreams/calls/test_calls.py::test_a_call_that_may_have_run_is_never_repeated "
        "upstreams/test_hostile_upstreams.py::test_up_43*",
    ),
    _rule(
        "R-UP-5",
        "Names never collide or look alike; the second of two is rejected and reported.",
        "core/names catalog/registry",
        "upstreams/listing/test_naming.py::"
        "test_on_a_clash_the_first_keeps_the_name_and_the_later_is_reported_with_its_remedy",
    ),
    _rule(
        "R-UP-6",
        "Definitions are pinned when first seen; a changed one is listed as pinned and not called until approved.",
        "upstreams/pinning/pins upstreams/pinning/pin_lock upstreams/pinning/pin_gate "
        "upstreams/pinning/pinned_resources upstreams/pinning/pin_gate "
        "upstreams/pinning/pinned_resources cli/lock",
        "upstreams/pinning/test_pinned_upstreams.py::test_a_rug_pull* "
        "upstreams/pinning/test_pinned_upstreams.py::test_one_character* "
        "upstreams/pinning/test_pinned_resources.py::test_a_changed_one_stays* "
        "upstreams/pinning/test_pinned_resources.py::test_strict* "
        "upstreams/pinning/test_pinned_instructions.py::test_instructions_are_pinned* "
        "cli/test_lock.py::test_a_change_is_refused*",
    ),
    _rule(
        "R-UP-7",
        "An upstream's texts and hints are not believed; what is invisible in them is shown.",
        "upstreams/listing/entry_validation upstreams/listing/proxy_tool "
        "upstreams/listing/suspicious_texts upstreams/calls/visible_results",
        "upstreams/test_hostile_upstreams.py::test_up_20* "
        "upstreams/test_hostile_upstreams.py::test_up_22* "
        "upstreams/calls/test_visible_results.py::test_results_pass_as_they_come_unless*",
        "Without `sanitize: true` what is invisible in results is neither escaped nor counted.",
    ),
    _rule(
        "R-UP-7b",
        "What is invisible in a definition, a log message, progress or a question is shown; a tool whose data hide "
        "something is rejected; first sights are scanned, and suspicious ones named where a person looks.",
        "files/documents/visible_text catalog/schemas/visible_schema "
        "upstreams/listing/entry_validation "
        "upstreams/transports/server_requests upstreams/listing/suspicious_texts "
        "upstreams/pinning/pin_review",
        "upstreams/listing/test_listed_entries.py::test_f13_12* "
        "upstreams/listing/test_entry_validation.py::test_f13_12* "
        "upstreams/transports/test_visible_messages.py::test_f13_12* "
        "upstreams/listing/test_suspicious_texts.py::test_f13_12* "
        "upstreams/pinning/test_suspicious_pins.py::test_f13_12*",
        "The scan knows phrases, not meanings; it is in English. URIs of resources pass as they are, and so does what "
        "a server asks a client's model.",
    ),
    _rule(
        "R-UP-8",
        "An upstream gets a minimal environment, is started without a shell, is sandboxed where its entry says so, and "
        "asks a client only what its entry allows.",
        "upstreams/transports/stdio_transport "
        "upstreams/transports/server_requests upstreams/transports/callers "
        "upstreams/transports/server_requests",
        "upstreams/test_hostile_upstreams.py::test_up_29* "
        "upstreams/test_hostile_upstreams.py::test_up_30* "
        "upstreams/test_sandboxed_upstreams.py::test_* "
        "e2e/test_upstreams_that_ask.py::test_what_the_entry_does_not_allow_is_not_asked",
    ),
    _rule(
        "R-UP-9",
        "An HTTP upstream may be private as you configured it; nothing it names is followed elsewhere.",
        "upstreams/transports/http_transport upstreams/oauth/provider_requests",
        "upstreams/test_hostile_http_upstreams.py::test_* upstreams/oauth/test_refused_logins.py::test_*",
    ),
    _rule(
        "R-HTTP-1",
        "Loopback or a private Unix socket, and a token of 32 random bytes.",
        "server/http/server server/http/connections server/http/token",
        "server/http/test_token.py::test_only_the_whole_token_is_accepted "
        "e2e/test_http_cases.py::test_a_request_is_refused_and_told_nothing",
    ),
    _rule(
        "R-HTTP-1b",
        "The page below /ui has a login of its own: a link of 32 random bytes that works once, for a minute, and a "
        "cookie for this page alone. The token of /mcp opens no page, and without a session nothing is told.",
        "server/ui/login server/ui/security server/http/page server/http/socket_user",
        "server/ui/test_login.py::test_* "
        "server/ui/test_security.py::test_without_a_session_nothing_is_answered_but_how_to_get_in "
        "cli/test_ui.py::test_the_token_of_mcp_opens_no_page "
        "cli/test_ui.py::test_a_command_that_a_model_runs_is_refused",
        "On Linux a link that goat-mcp opens, and its session, are for programs of your user alone. Elsewhere another "
        "user who lists processes and is faster than your browser could use the link; you see that it was used. A link "
        "that is only printed opens the page for everybody who has it.",
    ),
    _rule(
        "R-HTTP-1c",
        "A token of the identity provider counts if one of its keys has signed it with an algorithm for public keys, "
        "for this issuer and audience, and it has not expired. Anything else is a 401 that says which of these failed. "
        "No token reaches a tool, an upstream, the record or a log.",
        "server/identity/jwt_tokens server/identity/provider_keys server/identity/challenge server/http/connections",
        "server/identity/test_resource_server.py::test_* server/identity/test_provider_keys.py::test_* "
        "server/identity/test_claims.py::test_* e2e/test_identities.py::test_*",
        "A token that the provider has revoked counts until it expires. A stream that is open when its token expires "
        "stays open.",
    ),
    _rule(
        "R-HTTP-1d",
        "Over HTTP people decide about their own calls, administrators about everybody's, with a token whose scope no "
        "MCP client asks for.",
        "server/identity/approvals_api gateway/approvals/viewer server/ui/app",
        "server/identity/test_approvals.py::test_* server/identity/test_page_of_people.py::test_*",
        "Which clients get that scope is decided by the provider.",
    ),
    _rule(
        "R-HTTP-2",
        "Host, Origin and content type are checked before anything else.",
        "server/http/guard",
        "server/http/test_guard.py::test_a_host_that_is_not_exactly_ours_is_refused "
        "server/http/test_guard.py::test_a_foreign_origin_is_refused",
    ),
    _rule(
        "R-HTTP-2b",
        "The page checks Host and Origin exactly, takes changes as forms with the session's token only, and forbids "
        "code, frames and forms of others in every answer.",
        "server/ui/security server/ui/app",
        "server/ui/test_security.py::test_*",
    ),
    _rule(
        "R-HTTP-3",
        "Sessions, tasks and approvals belong to whoever they were made for; to others they do not exist.",
        "server/adapter commands/tasks/manager",
        "server/http/test_http_principals.py::test_* e2e/test_http_cases.py::test_ht_21*",
    ),
    _rule(
        "R-HTTP-3b",
        "Whatever is stored that grants or shows something carries its principal and session, and no store has a "
        "lookup without them. Only the command line, which is the operator's, sees everybody's.",
        "state/plans calls/permissions/plan_approval server/caller_identity files/changes/review "
        "files/memory agents/teams/coordinator",
        "server/test_two_principals.py::test_* server/http/test_http_principals.py::test_f13_02*",
    ),
    _rule(
        "R-HTTP-3c",
        "A server of several people runs no built-in tool that nobody has named, and with a directory for each "
        "principal no path and no command reaches another one's.",
        "gateway/build/tools files/workspace/personal_roots gateway/build/working_directories",
        "server/identity/test_shared_server.py::test_* files/workspace/test_personal_roots.py::test_* "
        "server/identity/test_two_users.py::test_*",
        "All directories belong to the system's user that runs goat-mcp. Handlers of manifests and upstreams are the "
        "operator's, and run as before.",
    ),
    _rule(
        "R-HTTP-4",
        "Bodies, headers, connections, sessions and rates are bounded.",
        "server/http/server server/http/connections server/http/body server/http/principal_limits",
        "e2e/test_http_cases.py::test_ht_13* e2e/test_http_cases.py::test_ht_15*",
    ),
    _rule(
        "R-HTTP-4b",
        "No principal, and nobody without a token, shuts others out: sessions and connections are shared fairly, a "
        "message that can be read in two ways is 400, and a refused body ends the connection.",
        "server/http/principal_limits server/http/sessions server/http/connections server/http/body",
        "server/http/test_http_shutting_out.py::test_f13_09* "
        "server/http/test_fair_shares.py::test_nobody_is_shut_out "
        "server/http/test_framing.py::test_f13_24* server/http/test_framing.py::test_f13_25* "
        "server/http/test_framing.py::test_f13_26*",
        "A flood of new connections or wrong tokens still costs processor time, which all clients share.",
    ),
    _rule(
        "R-HTTP-5",
        "Nothing over HTTP defines a process; without a token nothing is told.",
        "server/http/guard",
        "server/http/test_guard.py::test_every_other_path_is_not_found e2e/test_http_cases.py::test_ht_28*",
    ),
    _rule(
        "R-HTTP-6",
        "What header and body say has to agree; a closed request is a cancelled call.",
        "server/adapter",
        "e2e/test_http_cases.py::test_ht_26* "
        "conformance/test_server_scenarios.py::test_the_server_scenarios_of_both_revisions_pass",
    ),
    _rule(
        "R-CONF-1",
        "A project's settings only deny until you trust these very bytes.",
        "state/trust/project state/trust/store",
        "settings/test_project_settings.py::"
        "test_pr_30_an_untrusted_file_only_denies_and_says_how_to_trust_it "
        "cli/test_trust.py::test_pr_30_in_a_hostile_clone_nothing_runs_and_the_user_is_told",
        "Scripts that trusted commands start are not hashed. A project that only a client's roots name is not read.",
    ),
    _rule(
        "R-CONF-2",
        "Invalid settings stop the start; files with secrets have to be ours alone.",
        "state/trust/settings_file state/file_safety",
        "state/test_file_safety.py::test_one_fault_is_enough_to_refuse_it state/trust/test_settings_file.py::test_*",
        "Windows: owners and modes are not checked.",
    ),
    _rule(
        "R-SECRET-1",
        "Secrets come by reference, and are in no argument, status or error.",
        "core/substitution state/secret_references state/secret_store",
        "state/test_secret_references.py::test_* state/test_secret_store.py::test_* e2e/test_canaries.py::test_* "
        "e2e/test_stored_secrets.py::test_*",
        "One that you write out in an entry is yours to guard.",
    ),
    _rule(
        "R-SECRET-2",
        "Configured values, known names and known shapes are masked before anything is written.",
        "core/redaction state/telemetry calls/audit/log",
        "core/test_redaction.py::test_* e2e/test_canaries.py::test_R_SECRET_2_no_output_holds_a_secret",
        "Incomplete by nature: other shapes, encoded or very short ones. Results of tools are yours and not masked.",
    ),
    _rule(
        "R-SECRET-3",
        "A failure of ours is told with a call id and nothing else.",
        "calls/pipeline core/redaction",
        "calls/test_pipeline.py::test_AU_11_a_bug_shows_no_traceback_no_path_and_no_secret",
    ),
    _rule(
        "R-AUDIT-1",
        "The record is a private file outside the workspace; an event is one line.",
        "calls/audit/log calls/audit/chain",
        "calls/audit/test_log.py::test_a_call_is_two_lines_with_these_fields "
        "calls/audit/test_log.py::test_what_is_not_our_own_plain_file_is_not_written_to",
        "Windows access lists.",
    ),
    _rule(
        "R-AUDIT-2",
        "The decision is on record before any effect, the outcome after it, whatever it was; a record for people has "
        "the arguments without secrets, for 30 days.",
        "calls/admission calls/audit/log calls/audit/call_record calls/audit/shown_arguments",
        "calls/test_pipeline.py::test_AU_06_of_200_parallel_calls_each_has_its_decision_and_its_outcome "
        "calls/audit/test_call_record.py::test_* "
        "server/test_adapter.py::test_R_AUDIT_2_the_record_for_people_names_the_client",
        "A secret of no known shape under an innocent name is in the record for people.",
    ),
    _rule(
        "R-AUDIT-3",
        "Each line seals the one before, over rotation and over processes.",
        "calls/audit/chain calls/audit/verify",
        "calls/audit/test_chain.py::"
        "test_R_AUDIT_3_processes_that_write_at_the_same_time_make_one_chain "
        "cli/test_audit.py::test_R_AUDIT_3_a_changed_line_is_named_and_the_exit_code_says_it",
        "A cut tail or a rewrite shows only against a head that you kept elsewhere.",
    ),
    _rule(
        "R-AUDIT-4",
        "Where nothing can be recorded, what changes something is refused.",
        "calls/audit/log",
        "calls/audit/test_log.py::test_AU_05_on_a_full_disk_changes_are_refused",
    ),
    _rule(
        "R-AUDIT-5",
        "A kill leaves at most one torn line, which the next start marks.",
        "calls/audit/chain",
        "calls/audit/test_chain.py::test_R_AUDIT_5_a_writer_that_is_killed_leaves_a_record_that_verifies",
        "Power loss: the record is not flushed to the disk with each line.",
    ),
    _rule(
        "R-LIMIT-1",
        "16 calls at a time for one principal, 64 in all; more wait briefly and are then told so.",
        "calls/concurrency_limiter core/concurrency_limiter processes/computing/worker_process",
        "e2e/test_limits.py::test_of_a_hundred_sleeps_sixteen_run_and_pings_are_answered_meanwhile "
        "calls/test_concurrency_limiter.py::test_* processes/computing/test_computing_limiter.py::"
        "test_a_principal_who_asks_for_much_holds_up_nobody_with_either_tool",
    ),
    _rule(
        "R-STOP-1",
        "The end of input and the usual signals end it within five seconds, with the record complete.",
        "server/run server/run",
        "e2e/test_endings.py::test_it_ends_within_five_seconds_during_calls "
        "processes/test_stop_signals.py::"
        "test_where_senders_are_unknown_the_first_signal_stops_although_a_command_runs",
        "Each test run sees it end by itself; the five seconds are held to with GOAT_TESTS_FULL=1. Only Linux says who "
        "sent a signal: elsewhere the SIGTERM of a command, as in `pkill -f python`, ends the server, too.",
    ),
    _rule(
        "R-STOP-2",
        "A killed client leaves nothing running.",
        "server/run",
        "e2e/test_endings.py::test_many_killed_clients_leave_no_process "
        "e2e/test_endings.py::test_a_killed_client_is_noticed_though_another_process_holds_the_pipe",
        "50 clients with each test run; 1,000 with GOAT_TESTS_FULL=1.",
    ),
    _rule(
        "R-STOP-3",
        "A killed server leaves nothing running.",
        "processes/process_guard commands/sandbox/bubblewrap",
        "e2e/test_endings.py::test_goat_itself_killed_leaves_no_process "
        "processes/test_process_guard.py::test_what_left_its_session_without_a_mark_is_ended_too "
        "commands/sandbox/test_bubblewrap_traps.py::test_trap_7_*",
    ),
    _rule(
        "R-CRASH-1",
        "Our own files are whole or set aside; what cannot be read allows nothing.",
        "state/private_file state/trust/store state/database",
        "state/test_truncated_files.py::test_* "
        "state/trust/test_store.py::test_cut_at_any_byte_it_stands_for_no_trust_and_is_set_aside "
        "calls/permissions/test_remembering.py::"
        "test_a_line_that_a_killed_process_left_half_costs_that_rule_only",
    ),
    _rule(
        "R-LOAD-1",
        "Many clients beside a hanging and a crashing upstream: no answer wrong or lost.",
        "calls/pipeline",
        "e2e/test_soak.py::test_ld_01_no_answer_is_wrong_or_lost_beside_a_hang_and_crashes",
        "12 s with each test run, 60 s with GOAT_TESTS_FULL=1; not run for hours.",
    ),
)
