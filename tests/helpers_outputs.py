"""All outputs of a report, as text."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

from litmusfuzz.reports.html import page
from litmusfuzz.reports.junit import junit
from litmusfuzz.reports.markdown import markdown
from litmusfuzz.reports.outputs import as_json
from litmusfuzz.reports.sarif import sarif
from litmusfuzz.reports.stats import text
from litmusfuzz.reports.summary import summary

if TYPE_CHECKING:
    from litmusfuzz.reports.report import Report


def outputs(report: Report) -> dict[str, str]:
    """Every output as text that can be searched: without markup, in single spaces."""
    made = {
        "terminal": summary(report),
        "html": re.sub(r"<[^>]*>", " ", page(report)),
        "markdown": re.sub(r"<[^>]*>", " ", markdown(report)).replace("\\", ""),
        "junit": junit(report),
        "sarif": json.dumps(sarif(report), ensure_ascii=False),
        "json": json.dumps(as_json(report), ensure_ascii=False),
        "stats": text(report),
    }
    return {name: " ".join(html.unescape(each).split()) for name, each in made.items()}
