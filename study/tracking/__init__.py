"""MLflow is told what the results hold."""
