"""One server for many clients: HTTP in several protocols, one queue, a process that translates."""
