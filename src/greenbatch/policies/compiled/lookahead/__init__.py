"""The look-ahead planner: weights, forecast, statistics of arrivals, baseline, costs, choice of nodes, and the plan."""
