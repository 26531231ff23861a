"""Trained models, without torch: reading and checking a model's folder, and using it as a scheduler.

The main path, file by file::

    model                     load and save a folder of weights and their record
      records, versioned,     schema of ``model.json``; files with versions of their layout;
      tensors                 files of weights
    find, shipped/            models by name; the shipped models
    scheduler                 a model as a scheduler:
      network                   a network that decides at each view,
        onnx_graph, onnx_slots,   as an ONNX graph
        onnx_builder
      planner                   or weights of the look-ahead planner
    differences               how a scenario differs from the one a model was trained on
"""
