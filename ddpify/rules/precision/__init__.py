"""Rules about mixed precision: which numbers the training computes with, and how its gradients are scaled."""
