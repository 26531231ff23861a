"""Training of networks by policy gradients (PPO), which requires torch.

The main path, file by file::

    loop                   draw windows, simulate, update, validate, save
      rollout                simulations of windows
      advantages, ppo        advantage estimates; the update
        loads                  decisions or whole trajectories in minibatches
      state, device          the state between two epochs; the machine
"""

from greenbatch.learning.training.loop import train

__all__ = ["train"]
