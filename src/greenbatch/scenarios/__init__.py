"""A question: jobs + machine + power supply + rules, as TOML files; some are shipped."""

from greenbatch.scenarios.scenario import Evaluation, Scenario, load_scenario, read_scenario, shipped_names

__all__ = ["Evaluation", "Scenario", "load_scenario", "read_scenario", "shipped_names"]
