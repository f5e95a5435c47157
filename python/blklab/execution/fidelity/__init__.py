"""How far the simulator is from the kernel: the same cells on both, with the same device model and seed."""
