device = torch.device("cuda", local_rank) if torch.cuda.is_available() else torch.device("cpu")
