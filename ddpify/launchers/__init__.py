"""What starts the processes: how each launcher is called, and how a script is moved from one to another."""
