"""``greenbatch scenario``: list, show and describe scenarios."""

from __future__ import annotations

import json

import cyclopts

from greenbatch.cli.listing import print_entry

INDENT = 25
scenario = cyclopts.App(name="scenario", help="List, show and describe scenarios.")


@scenario.command(name="list")
def list_() -> None:
    """Print the shipped scenarios."""
    from greenbatch.scenarios import shipped_names
    from greenbatch.scenarios.scenario import SHIPPED
    from greenbatch.scenarios.toml import read_toml

    for name in shipped_names():
        description = read_toml(SHIPPED / f"{name}.toml")[0].get("description", "")
        print_entry(name, " ".join(description.split()), column=INDENT)


@scenario.command
def show(name: str) -> None:
    """Print a scenario as TOML with every default filled in, and the source of each value.

    Parameters
    ----------
    name
        A shipped scenario or a TOML file.
    """
    from greenbatch.scenarios import read_scenario
    from greenbatch.scenarios.toml import Place, write_toml

    section, file, lines = read_scenario(name)

    def source(place: Place) -> str:
        return f"line {lines[place]}" if place in lines else "default"

    print(f"# {file}")
    print("# The comment after a value is its line in that file, or default.")
    print(write_toml(section.model_dump(mode="json", exclude_none=True), source), end="")


@scenario.command
def schema() -> None:
    """Print the JSON schema of scenario files: types, defaults and, where declared, ranges and meanings."""
    from greenbatch.scenarios.schema import ScenarioFile

    print(json.dumps(ScenarioFile.model_json_schema(), indent=2))
