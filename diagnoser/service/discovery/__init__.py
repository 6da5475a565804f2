"""Where the addresses of engines come from: one file a kind."""
