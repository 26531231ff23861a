"""Presets: what an agent observes, does and is rewarded for, its network and its training, as TOML files.

The main path, file by file::

    preset, shipped/     the schema, reading and checking; the shipped presets
    training             the keys of the table ``[training]``
    layout, shapes       a preset as the engine takes it; the shapes of its tables, as networks take them
"""
