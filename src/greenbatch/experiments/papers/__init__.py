"""The papers' tables beside ours.

The main path, file by file::

    protocols              traces, rules and tables of each paper
    reproduce, published/  the plain columns; the figures as printed
      cells                  as tables, pictures and a report
    headroom, bounds.json  how much is left to a bound that no schedule can beat
    studies                the learned columns: what is trained
      study_results          its results
      study_tables           as tables
      study_report           as a report
    order_studies          the learned columns of InEPS, tested on orders of other workloads
      orders, fixed_rules    the orders, and all rules that are tested beside
      untrained              agents as their training begins
      order_results          its results
      ineps_tables           as tables
      order_report           as a report and files
    cost_aware             the study of prices, on other data than its paper's: rows and agents
      cost_aware_results     its results
      cost_aware_tables      as tables, the paper's apart
      cost_aware_report      as a report and files
    rare                   the study of jobs with value: settings, rows, and our reading of the published ranges
      rare_results           its results
      rare_tables            as tables, the ranges beside ours
      rare_report            as a report and files
    outputs                the files of the plain columns and of studies
"""
