"""Carries edits out faithfully, on the concrete syntax tree; nothing outside this room imports libcst."""
