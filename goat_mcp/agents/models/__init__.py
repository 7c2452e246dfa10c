"""Language models that are asked by us. That the client's own model is another one is known here, not how it works."""
