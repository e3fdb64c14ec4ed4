"""What a study asks of the analysis: which options to confirm, its report, figures for MLflow."""
