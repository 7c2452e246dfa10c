"""Logging in to HTTP upstreams (AUT-1 to AUT-3). `logins` is loaded at the start, the rest by the first login."""
