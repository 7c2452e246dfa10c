"""Confinement of commands and stdio upstreams: what they may read, write and connect to (security.md, R-PROC).

`options` are the settings and `confinement` is the contract of the ways to confine: `bubblewrap` and `landlock` on
Linux, `macos_seatbelt` on macOS. `sandbox.Sandbox` chooses one and is what callers use; `policy` computes what a
process may reach. `domain_proxy` is the network of `sandbox_network: domains`. `launcher` starts the programs of ours
that prepare a process from within.
"""
