"""A benchmark of whole tasks through a gateway: tokens, turns and success. See docs/context.md."""
