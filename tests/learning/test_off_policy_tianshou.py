"""Losses of the off-policy trainer against those of tianshou 2, which ``tests/peers.txt`` installs for the tests."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from greenbatch.learning.offpolicy import losses

pytestmark = pytest.mark.plain  # nothing of ours is compiled, and what tianshou compiles is not kept

STATES, ACTIONS, GAMMA = 6, 4, 0.9


class Table(torch.nn.Module):
    """One number per state and action."""

    def __init__(self, seed: int, *, actor: bool = False) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(STATES, ACTIONS, generator=torch.Generator().manual_seed(seed)))
        self.actor = actor

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> Any:
        del info
        rows = self.table[torch.as_tensor(np.asarray(obs), dtype=torch.long).reshape(-1)]
        return (rows, state) if self.actor else rows


def made() -> tuple[Any, dict[str, torch.Tensor]]:
    """A batch for tianshou and the same as tensors."""
    from tianshou.data import Batch

    random = np.random.default_rng(0)
    size = 32
    parts = {
        "obs": random.integers(STATES, size=size), "act": random.integers(ACTIONS, size=size),
        "rew": random.normal(size=size).astype(np.float32), "obs_next": random.integers(STATES, size=size),
        "done": random.random(size) < 0.3,
    }  # fmt: skip
    batch = Batch(**parts, terminated=parts["done"], truncated=np.zeros(size, bool), info={})
    return batch, {name: torch.from_numpy(value) for name, value in parts.items()}


def everything(rows: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(rows, dtype=torch.bool)


@pytest.mark.parametrize(("theirs", "ours"), [("binary", "binary"), ("exp", "exponential"), ("all", "clone")])
def test_discrete_crr(theirs, ours):
    from gymnasium.spaces import Discrete
    from tianshou.algorithm.imitation.discrete_crr import DiscreteCRR
    from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory

    actor, critic = Table(0, actor=True), Table(1)
    policy = DiscreteActorPolicy(actor=actor, action_space=Discrete(ACTIONS))
    algorithm = DiscreteCRR(
        policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=0.0), gamma=GAMMA, policy_improvement_mode=theirs,
        ratio_upper_bound=1.3, beta=0.8, min_q_weight=0.0, target_update_freq=0,
    )  # fmt: skip
    batch, parts = made()
    found = algorithm._update_with_batch(batch)
    log_pi = losses.log_policy(actor.table[parts["obs"]], everything(actor.table[parts["obs"]]))
    values = critic.table[parts["obs"]].detach()
    weights = losses.WEIGHTS[ours](losses.advantages(values, log_pi.detach(), parts["act"]), 0.8, 1.3)
    # tianshou multiplies (B,) by (B, 1), so its mean is over all pairs of log-probabilities and weights
    apart = losses.copying(log_pi, parts["act"], torch.ones_like(weights)).detach() * weights.mean()
    assert float(apart) == pytest.approx(found.actor_loss, rel=1e-5)
    following = actor.table[parts["obs_next"]].detach()
    value = losses.soft_value(
        critic.table[parts["obs_next"]].detach(), losses.log_policy(following, everything(following))
    )
    target = parts["rew"] + GAMMA * (~parts["done"]) * value
    error = losses.squared_errors(values.unsqueeze(0), parts["act"], target)
    assert 0.5 * float(error) == pytest.approx(found.critic_loss, rel=1e-5)


def test_discrete_sac():
    from gymnasium.spaces import Discrete
    from tianshou.algorithm.modelfree.discrete_sac import DiscreteSAC, DiscreteSACPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory

    actor, first, second = Table(0, actor=True), Table(1), Table(2)
    policy = DiscreteSACPolicy(actor=actor, action_space=Discrete(ACTIONS))
    still = AdamOptimizerFactory(lr=0.0)
    algorithm = DiscreteSAC(
        policy=policy, policy_optim=still, critic=first, critic_optim=still, critic2=second, critic2_optim=still,
        gamma=GAMMA, alpha=0.25,
    )  # fmt: skip
    batch, parts = made()
    both = torch.stack([first.table, second.table]).detach()
    following = actor.table[parts["obs_next"]].detach()
    value = losses.soft_value(
        both[:, parts["obs_next"]].amin(0), losses.log_policy(following, everything(following)), 0.25
    )
    target = parts["rew"] + GAMMA * (~parts["done"]) * value
    theirs = copy.deepcopy(batch)
    theirs.obs = batch.obs_next
    dist = policy(theirs).dist
    wrapped = type(batch)(obs=batch.obs_next)
    found_value = algorithm._target_q_compute_value(wrapped, type(batch)(dist=dist))
    np.testing.assert_allclose(found_value.detach(), value, rtol=1e-5, atol=1e-6)
    batch.returns = target
    found = algorithm._update_with_batch(batch)
    rows = actor.table[parts["obs"]]
    log_pi = losses.log_policy(rows, everything(rows))
    lowest = both[:, parts["obs"]].amin(0)
    assert float(losses.soft(log_pi, lowest, 0.25).detach()) == pytest.approx(found.actor_loss, rel=1e-5)
    for number, theirs_loss in enumerate((found.critic1_loss, found.critic2_loss)):
        error = losses.squared_errors(both[number, parts["obs"]].unsqueeze(0), parts["act"], target)
        assert float(error) == pytest.approx(theirs_loss, rel=1e-5)
