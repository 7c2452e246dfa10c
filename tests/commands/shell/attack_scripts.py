"""The agreed shell attacks by their ids, and the rules that they are tried against: run by `test_attack_cases` and
`test_against_real_bash`."""

from __future__ import annotations

ALLOW = ("git status:*", "git log:*", "git diff:*", "echo:*", "ls:*", "cat:*", "find:*", "sort:*", "sed:*", "rg:*")
"""The allow rules of the cases."""

WIDE_ALLOW = (
    *("git *", "echo *", "ls *", "cat *", "find *", "sort *", "sed *", "rg *", "man *", "tar *", "env *", "exec *"),
    *("eval *", "source *", "timeout *", "nohup *", "printf *", "history *", "shopt *", "alias *", "hash *", "trap *"),
    *("time *", "true *", "cd *", "bash *", "case *", "{ *"),
)
"""A user who trusts every program of the cases but rm, id and curl."""

ATTACKS = {
    "BR-01-semicolon": "git status; rm x",
    "BR-02-and": "git status && rm x",
    "BR-04-pipe": "git status | rm x",
    "BR-06-background": "git status & rm x",
    "BR-08-crlf": "git status\r\nrm x",
    "BR-11-nested_in_dquotes": 'echo "$(echo "$(rm x)")"',
    "BR-12-process_sub_in": "cat <(rm x)",
    "BR-13-process_sub_out": "echo x > >(rm x)",
    "BR-14-heredoc_expansion": "cat <<EOF\n$(rm x)\nEOF",
    "BR-15-herestring_shell": "bash <<< 'rm x'",
    "BR-16-heredoc_shell": "bash <<EOF\nrm x\nEOF",
    "BR-19-prompt_expansion_at_P": "a='$(rm x)'; echo ${a@P}",
    "BR-20-arith_index": "echo $((a[$(rm x)]))",
    "BR-23-printf_v": "printf -v 'a[$(rm x)]' x",
    "BR-25-env_prefix_pager": "GIT_PAGER='rm x' git log",
    "BR-26-env_prefix_ldpreload": "LD_PRELOAD=./evil.so ls",
    "BR-28-bash_env": "BASH_ENV=<(echo rm x) bash -c :",
    "BR-30-env_cmd": "env rm x",
    "BR-32-exec": "exec rm x",
    "BR-33-eval": "eval 'r''m x'",
    "BR-34-source": "source <(echo rm x)",
    "BR-35-timeout_wrap": "timeout 5 rm x",
    "BR-36-nohup_wrap": "nohup rm x",
    "BR-38-find_exec": "find . -maxdepth 0 -exec rm x \\;",
    "BR-39-find_delete": "find . -name '*.txt' -delete",
    "BR-40-find_fprint": "find . -fprint $OUT/pwn",
    "BR-42-git_alias": "git -c alias.z='!rm x' z",
    "BR-46-git_abbrev_opt": "git ls-remote --upload-pa='rm x' .",
    "BR-48-rg_pre": "rg --pre ./evil.sh x",
    "BR-49-sort_compress": "sort -S1b --compress-program=./evil.sh big",
    "BR-51-sed_w": "sed -n 'w $OUT/pwn' f",
    "BR-52-man_html": "man --html='rm x' man",
    "BR-54-tar_checkpoint": "tar cf /dev/null f --checkpoint=1 --checkpoint-action=exec='rm x'",
    "BR-55-history_write": "history -s x; history -a $OUT/pwn",
    "BR-57-redirect_append": "echo hi >> ~/.bashrc",
    "BR-60-redirect_fdvar": "{fd}> $OUT/pwn echo hi",
    "BR-61-dev_tcp": "cat < /dev/tcp/127.0.0.1/$PORT_PRIV",
    "BR-62-quote_split": "r''m x",
    "BR-64-line_continuation": "r\\\nm x",
    "BR-65-ansi_c": "$'\\x72m' x",
    "BR-69-brace_cmd": "{rm,x}",
    "BR-70-ifs": "cat$IFS/etc/passwd",
    "BR-71-abs_path": "/bin/rm x",
    "BR-72-function_shadow": "ls() { rm x; }; ls",
    "BR-73-alias_shadow": "shopt -s expand_aliases\nalias ls='rm x'\nls",
    "BR-74-hash_p": "hash -p /usr/bin/rm ls; ls x",
    "BR-75-trap": "trap 'rm x' EXIT",
    "BR-77-time_kw": "time rm x",
    "BR-79-brace_group": "{ rm x; }",
    "BR-80-case_kw": "case a in a) rm x;; esac",
    "BR-84-fifty_plus": "true; " * 60 + "rm x",
    "BR-85-zero_width": "git\u200b status; rm x",
    "BR-87-nul": "git status\u0000; rm x",
    "BR-90-cd_prefix": "cd $OUT && rm x",
    "BR-91-cd_write": "cd .goat && echo '{}' > settings.json",
}

DENIED = {
    "BR-DENY-1-plain": "rm x",
    "BR-DENY-1-path": "/bin/rm x",
    "BR-DENY-1-second": "true; rm x",
    "BR-DENY-1-substitution": "$(rm x)",
    "BR-DENY-1-quotes": "r''m x",
    "BR-DENY-1-env": "env rm x",
    "BR-DENY-1-command": "command rm x",
    "BR-DENY-1-group": "{ rm x; }",
    "BR-DENY-1-process-substitution": "cat <(rm x)",
    "BR-DENY-1-bash-c": "bash -c 'rm x'",
    "BR-DENY-1-blanks": "rm  -fr x",
}
"""Spellings that a deny rule for rm meets."""
