def agree_on_seed():
    """Start every rank's random numbers from rank 0's seed: what is drawn before training is then the same on all of them."""
    seed = torch.tensor(torch.initial_seed() % 2**31, device="cuda" if torch.cuda.is_available() else "cpu")
    dist.broadcast(seed, 0)
    torch.manual_seed(seed.item())
