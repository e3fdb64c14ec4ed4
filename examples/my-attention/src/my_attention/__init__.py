"""Parts for attention-study: a paradigm, networks, tasks, studies, a measure and a command."""
