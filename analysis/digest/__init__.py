"""From a results directory to frames: equal compute, choice, summaries, verdicts, claims."""
