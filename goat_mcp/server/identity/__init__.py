"""Clients that an OpenID provider knows: their tokens, and whose these are. Loaded if `identity.issuer` is set."""
