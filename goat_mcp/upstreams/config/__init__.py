"""What a user writes about upstreams, and one upstream as configured. Nothing here talks to one."""
