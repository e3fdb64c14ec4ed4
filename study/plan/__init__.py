"""Plans a study: axes become cells, cells become jobs, with their cost."""
