"""Mosaics: several base images, one of them the foreground."""
