"""Stdio upstreams of several replicas: one process for all of them, which one replica owns by a lease."""
