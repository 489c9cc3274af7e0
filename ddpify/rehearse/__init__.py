"""How a conversion is proved: the original is run as one process, the converted script as ranks, and what they did is compared.

Data flows one way: `scratch` lays out the two trees, `launch` runs a script in one of them, `history` reads its record, `compare` holds the
two histories against each other, `causes` says what a difference comes from. What runs inside the scripts' processes is in `inside/`,
the only room that imports torch.
"""
