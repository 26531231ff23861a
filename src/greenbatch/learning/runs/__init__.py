"""What every training and every search has: a plan, windows, and a folder to resume from.

The main path, file by file::

    plan, windows          everything that determines the weights; which jobs
    folder                 the folder of a training, whole at any moment
      checkpoint, log        the state to resume from; the figures of every epoch
      counters               progress
      records                schemas of the files
"""
