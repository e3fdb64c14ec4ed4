"""Where data come from: downloads, archives, folders, the cache."""
