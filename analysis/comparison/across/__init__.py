"""What is said and shown across the settings of one task."""
