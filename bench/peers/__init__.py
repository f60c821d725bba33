"""The workloads that a user would compare, and the libraries that run them. bench/python/peers.py starts it."""
