"""The parts of a gateway, each built from settings."""
