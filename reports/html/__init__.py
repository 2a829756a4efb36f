"""HTML page of a campaign: one file without other resources, readable without JavaScript.

`layout` places boxes and the lines between them, and knows nothing of tests; `picture`
draws a test with it; `charts` has the numbers over time; `page` fills the template.
Text from files is escaped: by Jinja2, and in drawings by `layout` and `charts`, which
alone write SVG.
"""

from litmusfuzz.reports.html.page import page

__all__ = ["page"]
