"""Stands in for the package of that name while tests run: its grammar costs 2 s of start-up in every Jupyter process.

jsonschema guards its import and then leaves the format checks of addresses out, which nothing here needs. Only the
test targets put this folder on PYTHONPATH.
"""

raise ImportError("left out while testing, see tests/stubs/rfc3987_syntax.py")
