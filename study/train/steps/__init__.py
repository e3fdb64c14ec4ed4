"""The loop: packs of cells take steps, are evaluated and leave checkpoints."""
