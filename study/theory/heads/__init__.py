"""Heads of attention: rules that score them, and what a network loses without them."""
