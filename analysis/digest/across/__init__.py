"""What the settings of one task change: factors, effects, and whether verdicts hold in all."""
