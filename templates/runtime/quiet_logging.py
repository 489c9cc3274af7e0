if rank != 0:
    logging.disable(logging.CRITICAL)
