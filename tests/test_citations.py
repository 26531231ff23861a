"""Every place in a paper that presets, features and reward terms cite has been looked up, and says what is cited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "greenbatch"
PLACE = re.compile(
    r"(?:Eqs?\. |Tables? |[Ss]ections? |§|Algorithm |[Cc]hapters? |[Ff]igures? |[Ff]ig\. )[0-9A-Z][0-9A-Z.-]*[0-9A-Z]?"
    r"(?:(?:, | and )(?:[AB]\.\d|\d(?:\.\d)*)(?!\d))*"
)
PAPERS = ("GAS-MARL", "RLScheduler", "InEPS", "Le Hai et al.", "RARE", "CoCoRL", "dissertation")
DISSERTATION = {
    "3": "the environment", "5": "RARE", "6": "CoCoRL", "7": "offline and online learning",
    "3.2": "sparse and dense rewards", "3.2.1": "state", "3.2.1.1": "image of resources", "3.2.1.2": "vectors of jobs; "
    "QoS", "3.2.2": "actions", "3.2.3": "rewards", "5.3": "training; the value of completed jobs is the reward",
    "5.4.2": "rules; no backfilling", "6.6.4": "limit of 2000", "6.6.5": "gains; limit 7000 of 11,000", "7.4":
    "offline and online losses; PopArt", "7.5.1": "cloning and offline", "7.5.2": "online", "7.5.3": "offline, then "
    "online", "Eq. 3.1": "qos_violation_time", "Eq. 3.2": "total job value", "Eq. 6.11": "cost of waiting or delayed "
    "jobs", "Algorithm 6": "RARE", "Algorithm 7": "multiplier", "Algorithm 9": "offline", "Algorithm 10": "online",
    "Table A.2": "chapter 5", "Table A.3": "chapter 6", "Table A.4": "chapter 7", "Table A.5": "encoders", "Table B.1":
    "simulator", "figure 5.6": "ready pool",
}  # fmt: skip
LOOKED_UP: dict[str, dict[str, str]] = {
    "GAS-MARL": {
        "4": "the algorithm", "5": "experiments", "4.2.1": "state, actions, reward", "4.2.3": "PPO and its numbers",
        "Eq. 5": "average bounded slowdown", "Eq. 9": "reward",
    },
    "RLScheduler": {
        "II-A": "goals", "IV": "design", "IV-B": "inputs of the networks", "IV-C": "trajectory filtering",
        "V-A": "training", "V-C": "convergence within 100 epochs", "Table I": "attributes of a job",
    },
    "InEPS": {
        "3.3": "environment", "3.3.1": "observation", "3.3.3": "rewards", "3.4": "agent; averaged weights",
        "Table 1": "features", "Table 5": "numbers of the training", "Eq. 1": "energy estimate",
    },
    "Le Hai et al.": {
        "3.1": "problem; cost of all sources", "3.2": "state, actions, reward", "3.3": "training", "4.3": "numbers",
        "4.4": "ablations", "Eq. 3": "objectives", "Eq. 5": "reward",
    },
    "RARE": DISSERTATION, "CoCoRL": DISSERTATION, "dissertation": DISSERTATION,
}  # fmt: skip
"""Paper -> what can be cited of it -> what stands there; sections without a word before them."""
OF_FILES = {
    "gas-marl": "GAS-MARL", "maskable": "GAS-MARL", "training": "GAS-MARL", "rlscheduler": "RLScheduler",
    "ineps": "InEPS", "pair_features": "InEPS", "cost-aware": "Le Hai et al.", "one-action": "Le Hai et al.",
    "no-cost": "Le Hai et al.",
}  # fmt: skip
"""Begin of a file's name -> the paper that it means where it names none; all others mean the dissertation."""
FILES = sorted([
    *(SOURCE / "presets").rglob("*.toml"), *(SOURCE / "presets").glob("*.py"),
    *(
        SOURCE / "engine" / "observe" / name
        for name in ("features.py", "features.toml", "pair_features.py", "reward_terms.toml", "reward_terms.py")
    ),
])  # fmt: skip


def cited(file: Path) -> list[tuple[str, str]]:
    """Paper and place of every citation of a file."""
    usual = next((paper for name, paper in OF_FILES.items() if file.name.startswith(name)), "dissertation")
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        for match in PLACE.finditer(line):
            named = [(line.rfind(paper, 0, match.start()), paper) for paper in PAPERS]
            at, paper = max(named)
            kind = re.sub(r"^(Eq|Table|Algorithm|[Ff]ig)\D*.*", r"\1", match[0])
            word = {"Eq": "Eq. ", "Table": "Table ", "Algorithm": "Algorithm ", "Fig": "figure ", "fig": "figure "}
            places = re.findall(r"[IVX]+(?:-[A-F])?\b|[AB]\.\d|\d+(?:\.\d+)*", match[0])
            found += [(paper if at >= 0 else usual, word.get(kind, "") + place) for place in places]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_cited_has_been_looked_up(file: Path) -> None:
    assert {place for place in cited(file) if place[1] not in LOOKED_UP[place[0]]} == set()


def test_citations_are_found() -> None:
    assert ("GAS-MARL", "Eq. 9") in cited(SOURCE / "presets/shipped/gas-marl.toml")
    assert ("RLScheduler", "Table I") in cited(SOURCE / "engine/observe/features.toml")
    assert ("dissertation", "7.5.2") in cited(SOURCE / "presets/shipped/rare-online.toml")
    assert sum(len(cited(file)) for file in FILES) > 100
