"""Theory beside sampling: settings, claims, figures and numbers of others."""
