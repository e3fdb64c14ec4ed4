"""A paradigm, a network, a task and a study for attention-study."""
