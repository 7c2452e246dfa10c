"""What a bash script would run, told from its text alone: pure analysis for rules, notices and hardening.

No boundary: text analysis only chooses between running and asking (R-SHELL-1); the sandbox is what holds.
"""
