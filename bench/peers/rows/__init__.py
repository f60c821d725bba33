"""The rows, by kind of operation."""
