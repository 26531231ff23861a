"""The look-ahead planner: its weights, forecast, statistics of arrivals and baseline, and the plan itself."""
