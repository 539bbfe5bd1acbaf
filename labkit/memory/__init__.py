"""Simulated memory: a ledger of accesses, an explicit scratchpad."""
