"""Kernels that really compute on a scratchpad, every byte counted."""
