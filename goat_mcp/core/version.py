"""The version of this package. Everything else that names it takes it from here."""

__version__ = "0.1.0"
