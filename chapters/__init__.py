"""The chapters of the project: one folder each, which comes in by the door of `study.door`."""
