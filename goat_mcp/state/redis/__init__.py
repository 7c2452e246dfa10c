"""State that several servers share, in Redis or Valkey (design D19, design/0032)."""
