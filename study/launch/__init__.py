"""Runs jobs, in this process or as trials of Ray, and tells failures apart."""
