"""What a bash script would run, by its text alone: pure analysis for rules, notices and hardening.

It is no boundary: text analysis only chooses between running and asking (R-SHELL-1). The sandbox is the boundary.
"""
