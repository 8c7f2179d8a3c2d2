"""What real clients speak, one file each: fields in, the same service, answers in their shape."""
