"""Schemas of tools as hosts and their models' APIs accept them. Not here: checking data against a schema."""
