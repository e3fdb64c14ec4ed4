"""Studies of what the paper leaves open; docs/open-questions.md has the answers."""
