"""One-shot images: two labelled images of two characters, and a query that shows one of them."""
