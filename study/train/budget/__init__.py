"""What a cell may spend, what a step costs, and where that ends."""
