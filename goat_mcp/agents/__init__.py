"""Subagents: their types, the engines that run them, and what is kept of them. What a model sees is the tool Agent."""
