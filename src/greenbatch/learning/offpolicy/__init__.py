"""Off-policy training of networks: a discrete actor-critic with a replay buffer, which requires torch.

The main path, file by file::

    loop                   simulate windows, take gradient steps, validate, save
      behavior               what fills the buffer: schedulers, a dataset, the actor
      buffer, tables         the transitions of many windows; their observations as batches
      learner                a gradient step
        agent, critics         networks; normalized targets
        losses                 losses of actor and critics by name
"""

from greenbatch.learning.offpolicy.loop import train

__all__ = ["train"]
