"""Mosaics: images cut from and put beside others, of which one is the foreground."""
