"""Everything about files: the workspace, reading, editing, search, changes, memory."""
