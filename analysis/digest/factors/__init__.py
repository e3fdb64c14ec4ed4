"""What settings of a study change: which vary what alone, and how much that changes."""
