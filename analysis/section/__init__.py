"""The contract of a section of the report, and what it is made of."""
