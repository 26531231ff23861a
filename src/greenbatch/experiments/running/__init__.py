"""Running schedulers on the same windows.

The main path, file by file::

    compare                all schedulers on all windows
      workers, finished      processes that simulate windows; the finished windows of an interrupted comparison
      model_warnings         models on unfamiliar scenarios or in-sample windows
    frames, statistics     the figures as tidy frames; means, intervals, paired differences
    estimates              what recorded decisions say about a model
    retrained              a model and its retrained copy
"""
