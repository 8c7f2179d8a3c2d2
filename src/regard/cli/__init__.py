"""The command line: `main.py`, and one small file for each command."""
