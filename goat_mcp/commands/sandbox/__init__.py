"""Confinement of commands and stdio upstreams: what they may read, write and connect to (security.md, R-PROC).

`options` are the settings, `confinement` the contract of every way to confine, `sandbox` chooses one and is what
others ask. `bubblewrap.Bubblewrap` and `landlock.Landlock` are the ways, `seccomp.unix_socket_filter()` the BPF
program (bytes; None where the machine is unknown) that refuses Unix sockets, and `domain_proxy.DomainProxy(domains)`
with `await start() -> ProxyDoor` the way out for `sandbox_network: domains`. `launcher` starts the programs of ours
that prepare a process from within.
"""
