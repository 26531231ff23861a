"""How often the site of ``rare/anl-like`` meets a load, with and without its battery (RARE, Fig. 4.2).

The text says of GLEAMM in 2019 that 250 kW are met in at least 60 % of the time and 80 kW in at least 95 %. Run
``python docs/gleamm.py`` for the table of all loads, and ``python docs/gleamm.py FILE.png`` for the curves.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib import pyplot

from greenbatch.energy import Site
from greenbatch.energy.powered import powered_levels
from greenbatch.scenarios import load_scenario

SCENARIO = "rare/anl-like"
LOADS_KW = np.arange(20.0, 401.0, 20.0)
STATED = {250.0: 0.60, 80.0: 0.95}
"""Load [kW] -> least share of the hours in which it is met (section 4.5.2)."""


def met(site: Site, load_kw: float) -> float:
    """Share of the hours of the series in which a constant load is met."""
    _, level, _ = powered_levels(site, np.array([0.0, load_kw * 1e3]), site.end_s)
    return float(level.mean())


def main(picture: Path | None) -> None:
    """Print the shares, and draw them if asked for."""
    with_battery = load_scenario(SCENARIO).site
    if with_battery is None:
        raise SystemExit(f"{SCENARIO} has no site")
    alone = replace(with_battery, storage=None)
    curves = {"with the battery": with_battery, "without": alone}
    shares = {name: [met(site, load) for load in LOADS_KW] for name, site in curves.items()}
    print("load kW   " + "   ".join(curves))
    for k, load in enumerate(LOADS_KW):
        print(f"{load:7.0f}   " + "   ".join(f"{shares[name][k]:{len(name)}.1%}" for name in curves))
    for load, least in STATED.items():
        print(f"{load:.0f} kW are met in {met(with_battery, load):.1%} of the hours; stated: at least {least:.0%}")
    if picture is not None:
        figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
        for name, share in shares.items():
            axes.plot(LOADS_KW, share, label=name)
        axes.plot(list(STATED), list(STATED.values()), "k^", label="stated of GLEAMM, at least")
        axes.set(xlabel="load [kW]", ylabel="share of the hours in which it is met", ylim=(0, 1))
        axes.legend()
        figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
