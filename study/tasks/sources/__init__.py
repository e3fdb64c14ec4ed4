"""Sources of data: directories, shared storage, downloads and the cache."""
