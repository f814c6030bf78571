"""Dynamic Neural Text Model: meanings of unknown words and entities, built while reading."""

__version__ = "0.1.0"
__all__ = ["__version__"]
