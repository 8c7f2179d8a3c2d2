"""The notes' claims, run."""
