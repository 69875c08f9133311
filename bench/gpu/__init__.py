"""What `gpu_check.py` measures on a device, a part a file. Each gives rows of its table."""
