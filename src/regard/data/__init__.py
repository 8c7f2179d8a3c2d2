"""Files to batches: whatever parallel text a person has, read in pairs, with nothing lost."""
