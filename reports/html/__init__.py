"""The page of a night: one file that needs nothing else, readable without JavaScript.

`layout` places boxes and draws lines between them and knows nothing of tests; `picture`
draws a test with it; `charts` are the small pictures of numbers; `page` fills the
template. Whatever comes from a file is escaped: by Jinja2, and in drawings by `layout`
and `charts`, which alone write SVG.
"""

from litmusfuzz.reports.html.page import page

__all__ = ["page"]
