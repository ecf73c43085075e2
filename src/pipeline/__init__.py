"""Find and grade scholarly papers. Knows nothing of Hydra, MLflow or judgments."""
