"""Captions: images whose regions are segments, described word by word."""
