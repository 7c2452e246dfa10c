"""The replicas of one shared server: which are alive, and who holds a name, by leases in the shared state."""
