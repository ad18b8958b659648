"""The site: `make docs` writes it to build/docs, and every warning is an error.

The pages are the Markdown files of this folder, which are read on GitHub too; those of
`reference/` take their text from docstrings. Links between files are checked by Sphinx
(nitpicky), those of the HTML by tests/docs/test_site.py, neither with a network.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import tf32dtype

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import stand_ins  # noqa: E402

project = "tf32dtype"
author = "tf32dtype developers"
copyright = author
version = release = tf32dtype.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
nitpicky = True

#: A page of its own, which is copied as it is, and linked where it is there.
EXPLORER = HERE / "explorer"
exclude_patterns = ["explorer"]

# -- pages ---------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence"]
#: Contents at the head of a page lead to its headings, as on GitHub.
myst_heading_anchors = 3
highlight_language = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_copies)
    app.connect("autodoc-process-signature", plain_defaults)
    app.connect("build-finished", write_redirects)
    if EXPLORER.is_dir():
        app.tags.add("explorer")
        app.connect("build-finished", copy_explorer)


def link_copies(app: Sphinx, page: str, source: list[str]) -> None:
    """Make links to files outside this folder, which GitHub follows, lead to a copy."""
    up = re.escape("../" * (page.count("/") + 1))
    source[0] = re.sub(rf"\]\(({up}[^)#]+)\)", r"](path:\1)", source[0])


#: Pages that had another address before 0.1.0, by the folder that holds them now.
FOLDERS = {
    "get_started": "tutorial",
    "how_to": """arithmetic blas blocks_training cuda dask explorer files precision
    report terminal tune typing""",
    "concepts": "blocks formats tensor_cores threads",
    "reference": "command contract libraries numpy platforms tensors",
    "benchmarks": "accuracy applications speed",
    "project": "architecture faq",
}
MOVED = {
    "guide": "how_to/index",
    "ml_dtypes": "how_to/from_ml_dtypes",
    "recipes/index": "../how_to/index",
    **{x: f"{folder}/{x}" for folder, names in FOLDERS.items() for x in names.split()},
}
REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>This page has moved</title>
<meta http-equiv="refresh" content="0; url={0}">
<link rel="canonical" href="{0}">
<p>This page has moved to <a href="{0}">{0}</a>.</p>
"""


def write_redirects(app: Sphinx, error: Exception | None) -> None:
    """Write a page to each old address that sends the reader to the new one."""
    for old, new in MOVED.items():
        path = Path(app.outdir) / f"{old}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(REDIRECT.format(f"{new}.html"))


def plain_defaults(app: Sphinx, kind: str, name: str, *rest: Any) -> Any:
    """A default such as `np.float32`, by the name that is written."""
    _, _, arguments, result = rest
    if arguments is None:
        return None
    return re.sub(r"<class 'numpy\.(\w+)'>", r"np.\1", arguments), result


def copy_explorer(app: Sphinx, error: Exception | None) -> None:
    shutil.copytree(EXPLORER, Path(app.outdir) / EXPLORER.name, dirs_exist_ok=True)


# -- reference -----------------------------------------------------------------------

#: Libraries of others are not installed for this, and what our modules ask of them.
stand_ins.use(
    "cupy dask distributed gguf h5py numba onnx pyarrow torch zarr".split(),
    {
        "cupy.cuda.runtime.is_hip": False,
        "zarr.errors.DataTypeValidationError": TypeError,
    },
)

#: `name` in a docstring is a link where it is a name of ours, and code where it is not.
default_role = "py:obj"
#: Names that can be nothing else are links: those of our modules, and of classes.
OURS = r"(td|tf32dtype)\..*|(Block|Tile)Array|matmul_precision"
nitpick_ignore_regex = [("py:obj", rf"(?!({OURS})$).*")]
autodoc_typehints = "none"  # the docstrings say what is taken
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
#: What a docstring has to have; the codes are those of numpydoc.validate.
numpydoc_validation_checks = {
    *("GL06", "GL07", "GL08"),  # it is there; its sections are known, in their order
    *("PR01", "PR02", "PR03", "PR05"),  # all parameters of the function, and no others
}
#: Rows of facts, whose fields are documented one by one; what functions make; and
#: methods of NumPy's arrays.
FACTS = """Format BlockFormat Model Aligned Rounded BlockScaled Hypothesis Device
Contested TensorInfo Check Worst LU BackwardError Solution""".split()
MADE = """SafeTensors gguf.File dask.BlockArray WorkersPrecision NumberArray
NumberScalar Identification LayerReport LayerRow GroupRow ProductErrors
RangeLost""".split()
numpydoc_validation_exclude = {rf"\.{name}$" for name in FACTS + MADE}
numpydoc_validation_exclude |= {r"\.cuda\.ndarray"}
#: Fields that are None by default, whose comments an older Sphinx hides from numpydoc.
numpydoc_validation_exclude |= {
    r"\.(Aligned|BlockScaled)\.(cut_first|floor|zero_c_exponent)$"
}

# -- looks ---------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "tf32dtype"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
#: The home page does not have a sidebar.
html_sidebars = {"index": []}
