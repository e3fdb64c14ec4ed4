"""Comparisons at equal compute: the cut, the choice, the paired differences."""
