"""One-shot images: networks that are trained, a theory of their attention, and pruned heads."""
