"""Running schedulers side by side, tables, statistics, pictures and reports.

The main path, file by file::

    run, compare                  the public functions; the same windows for all schedulers
      workers, finished           processes that simulate windows; the finished windows of an interrupted comparison
    statistics                    means, intervals, paired differences
    tables, terminal, summary     tables; their form in a terminal; the same as JSON
    findings                      what was found, in sentences
      cautions, data_notes,       warnings to show with it: few windows, stretched schedules, repaired inputs,
      model_warnings              unfamiliar or in-sample models
    drawing, plots                the style of pictures; the pictures of a comparison
      curves, decisions           pictures of trainings and of a model's decisions
    report, model_sections        one HTML file; its sections on models
    notebook                      tables, pictures and reports from Python
    reproduce                     the plain columns of published tables
    studies, study_results        the learned columns: what is trained, and its results
      study_tables, study_report  as tables and as a report
    retrained                     a model and its retrained copy
"""
