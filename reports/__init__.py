"""Reports of campaigns and of single judgements: terminal, HTML, JSON, scripts.

A campaign is a stream of events (`litmusfuzz.reports.events`), and its report
(`litmusfuzz.reports.report`) a fold over them, from which all outputs are written.
This package knows the corpus and nobody else: it shows what it is given and
decides nothing.
"""
