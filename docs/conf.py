"""How the documentation is built: ``make docs``."""

from importlib.metadata import version as version_of

project = "greenbatch"
author = "The greenbatch developers"
release = version_of("greenbatch")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
smartquotes = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
napoleon_use_rtype = False
html_theme = "furo"
html_title = f"greenbatch {release}"
html_static_path = ["static"]
html_css_files = ["tables.css"]
