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
    cocorl                 the study of limits on the accrued cost: settings, agents
      cocorl_limits          the limits, from agents without one
      cocorl_results         its results
      cocorl_tables          as tables, the published ranges beside ours
      cocorl_report          as a report and files
    offline                the study of learning from rules' decisions: sizes, datasets, methods
      offline_agreement      how often agents decide as rules do
      offline_curves         online decisions until a value is reached
      offline_results        its results
      offline_tables         values and datasets as tables
      offline_claims         published orders and Table 7.2 beside ours
      offline_learning       agreement and online decisions as tables and a picture
      offline_report         as a report and files
    outputs                the files of the plain columns and of studies
"""
