"""A notebook as a script: its code cells in their order, without what only a notebook understands."""
