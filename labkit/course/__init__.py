"""Notebooks, exercises and grades."""
