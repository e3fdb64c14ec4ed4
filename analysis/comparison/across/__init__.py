"""What the comparisons of one page say together: which settings vary, and what that changes."""
