"""YAML without surprises: a key that stands twice is an error. Of two lists of rules one would silently not hold."""

from __future__ import annotations

from typing import Any

import yaml


class StrictLoader(yaml.SafeLoader):
    """Plain data only; keys are texts, each once in its mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        check_keys(node)
        return super().construct_mapping(node, deep)


def check_keys(node: yaml.MappingNode, *, may_merge: bool = False) -> None:
    """Raises `ConstructorError` for a key that is no text or stands twice, and for `<<` unless it `may_merge`."""
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key is not a text", key.start_mark)
        if key.tag == "tag:yaml.org,2002:merge" and not may_merge:
            # Few of them, one in the other, stand for more values than there is memory for.
            raise yaml.constructor.ConstructorError(None, None, "`<<` is not supported", key.start_mark)
        if key.value in seen:
            problem = f"the key {key.value!r:.80} stands here twice"
            raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        seen.add(key.value)
