"""The wires to upstreams: a process's pipes or HTTP, and the connection that is opened over them."""
