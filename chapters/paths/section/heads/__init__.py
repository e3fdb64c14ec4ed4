"""Trained networks: settings, orders and scores of heads, claims and figures."""
