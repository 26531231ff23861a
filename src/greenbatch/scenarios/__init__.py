"""Scenarios: jobs, machine, power supply and rules, described in TOML files; some are shipped."""

from greenbatch.scenarios.scenario import Evaluation, Scenario, load_scenario, read_scenario, shipped_names

__all__ = ["Evaluation", "Scenario", "load_scenario", "read_scenario", "shipped_names"]
