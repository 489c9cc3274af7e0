"""Runs a project abstractly: values flow through assignments, calls, attributes, containers, loops and imports."""
