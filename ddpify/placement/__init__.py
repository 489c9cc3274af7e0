"""How each value differs between ranks."""
