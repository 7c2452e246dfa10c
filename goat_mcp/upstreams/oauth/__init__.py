"""Logging in to HTTP upstreams (AUT-1 to AUT-3). `logins` is the door; the rest is loaded by an upstream that asks."""
