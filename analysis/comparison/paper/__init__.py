"""What the paper says of comparisons: its claims, and the numbers of its Table 1."""
