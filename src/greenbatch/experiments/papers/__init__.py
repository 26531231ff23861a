"""The papers' tables beside ours.

The main path, file by file::

    protocols              traces, rules and tables of each paper
    reproduce, published/  the plain columns; the figures as printed
      cells                  as tables, pictures and a report
    studies                the learned columns: what is trained
      study_results          its results
      study_tables           as tables
      study_report           as a report
    outputs                the files of both
"""
