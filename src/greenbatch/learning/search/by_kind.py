"""A search by the kind of its network: weights of the look-ahead planner, parameters of a policy, or a ranking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from greenbatch.learning.runs.counters import Counters
from greenbatch.learning.runs.folder import begun, check_same, open_run
from greenbatch.learning.runs.plan import Plan
from greenbatch.learning.search.loop import Watch, search_settings
from greenbatch.learning.search.parameters import ParameterSearch
from greenbatch.learning.search.planner import PlannerSearch, is_weighed
from greenbatch.learning.search.ranking import RankingSearch
from greenbatch.learning.search.weighed import WeighedSearch
from greenbatch.workers import Workers


def search(
    plan: Plan, folder: Path, *, watch: Watch, started: Callable[[], None] | None = None,
    replace_earlier: bool = False, workers: Workers = 1,
) -> Counters:  # fmt: skip
    """Search in a folder: start, or resume an interrupted search. See `training.loop.train`.

    Candidates are evaluated by the workers; the result does not depend on them.
    """
    search_settings(plan)
    kind: type[RankingSearch | PlannerSearch | ParameterSearch] = RankingSearch
    if plan.preset.is_policy:
        kind = ParameterSearch
    elif not plan.preset.is_ranking:
        kind = WeighedSearch if is_weighed(plan.preset) else PlannerSearch
    if not replace_earlier and begun(folder):
        check_same(folder, plan)
    searching = kind(plan)
    searching.workers = workers
    with open_run(folder, plan, replace_earlier=replace_earlier) as home:
        searching.open(home, watch)
        if started is not None:
            started()
        try:
            searching.run()
        except (KeyboardInterrupt, SystemExit):
            if home.settled and searching.found:
                searching.write_model()
            raise
        finally:
            searching.log.close()
    return searching.counters
