"""Write the profiles of the scenarios that shipped parameters were searched on, as the package reads them.

``python docs/searched.py`` needs the logs of HPC2N, SDSC Blue Horizon and CEA Curie, see ``greenbatch data list``.
"""

from __future__ import annotations

import json
from pathlib import Path

import greenbatch as gb
from greenbatch.models import searched
from greenbatch.scenarios.profile import profile

SEARCHED = {"foresee": ("logs/hpc2n", "logs/sdsc-blue", "logs/cea-curie")}
"""Policy -> scenarios that its parameters were searched or tried on."""


def profiles() -> dict[str, dict[str, object]]:
    """The content of the file."""
    return {
        policy: {name: profile(gb.load_scenario(name)).model_dump(mode="json") for name in names}
        for policy, names in SEARCHED.items()
    }


if __name__ == "__main__":
    Path(searched.__file__).with_name("searched.json").write_text(json.dumps(profiles(), indent=1) + "\n", "utf-8")
