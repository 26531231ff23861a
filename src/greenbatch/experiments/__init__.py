"""Running schedulers side by side, reports, and the papers' tables.

The main path, room by room::

    notebook               the public functions, and results with tables and pictures
    papers/                the papers' tables beside ours
    reports/               tables, sentences, pictures, the report
    running/               the same windows for all schedulers; means, intervals, differences
"""
