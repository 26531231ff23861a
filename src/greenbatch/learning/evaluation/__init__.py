"""What recorded decisions say about a policy that did not make them (off-policy evaluation).

The main path, file by file::

    agreement              how often a policy decides as the record does
    importance             the policy's value by weighted importance sampling
    fitted                 the policy's value by fitted Q evaluation, which requires torch
      policies               fixed policies as tables of log-probabilities, which require torch
      recorded               a model's policy on a dataset, and the dataset's transitions, which require torch
      estimate               a value with its interval and its effective sample size

Recorded episodes are flat arrays, episode after episode, with the places where each begins, as in `offpolicy.buffer`.
"""

from greenbatch.learning.evaluation.agreement import Agreement, agreement
from greenbatch.learning.evaluation.estimate import Estimate
from greenbatch.learning.evaluation.importance import per_decision, per_episode

__all__ = ["Agreement", "Estimate", "agreement", "per_decision", "per_episode"]
