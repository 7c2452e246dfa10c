"""What happens to the changes tools make: they are kept so that they can be undone, or wait for a review."""
