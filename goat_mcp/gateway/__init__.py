"""The composition root: settings in, a running gateway out."""
