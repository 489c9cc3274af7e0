def prepare_spawn(processes):
    """Tell the processes to come how many they are, unless WORLD_SIZE says it, and where they meet; return their number."""
    os.environ.setdefault("WORLD_SIZE", str(processes))
    os.environ["LOCAL_WORLD_SIZE"] = os.environ["WORLD_SIZE"]
    os.environ.setdefault("MASTER_ADDR", "localhost")
    if "MASTER_PORT" not in os.environ:
        with socket.create_server(("localhost", 0)) as free:
            os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    return int(os.environ["WORLD_SIZE"])
