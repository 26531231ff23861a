"""Predictors of run times."""
