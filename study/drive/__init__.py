"""The road of a command: where it trains, what is next, who runs it, what is concluded."""
