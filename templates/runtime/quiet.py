if rank != 0:
    sys.stdout = open(os.devnull, "w")
