"""One call, from its name to its result: validation, permission, hooks, concurrency, limits, audit."""
