"""From axes to cells to jobs: what would run, what it costs."""
