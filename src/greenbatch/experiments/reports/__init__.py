"""What a comparison found, as tables, sentences, pictures and one HTML file.

The main path, file by file::

    tables, terminal       tables; their form in a terminal
      means, summary         the table of means in Python; the same figures as JSON
    findings               what was found, in sentences
      notes, cautions        what is to be known with it, by consequence; how far figures can be trusted
    drawing, plots         the style of pictures; the pictures of a comparison
      pictures               by their kind, for Python
      curves, decisions      pictures of trainings and of a model's decisions
    report, model_sections one HTML file; its sections on models
    outputs, result_folder the files of a result; the folder that holds them, whole or not at all
"""
