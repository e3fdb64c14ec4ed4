"""Statistics, stages of a study, how claims are decided: functions of arrays and frames."""
