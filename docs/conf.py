"""How the documentation is built: ``make docs``."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parent))

from tables import TABLES

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


class Generated(SphinxDirective):
    """A table made from the code: ``generated`` and a name in ``tables.TABLES``."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Make the table and read it as a part of the page."""
        return self.parse_text_to_nodes(TABLES[self.arguments[0]]())


def setup(app: Sphinx) -> None:
    """Make the directive known."""
    app.add_directive("generated", Generated)
