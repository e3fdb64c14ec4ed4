"""Shards: several processes that train one study together, each a fixed share of its cells."""
