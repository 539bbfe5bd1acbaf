"""One module of checks an exercise."""
