"""Requests from one replica to another: who may send one, and how it travels."""
