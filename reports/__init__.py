"""Records in, pages out: terminal view, plain lines, JSON, scripts.

A record (`litmusfuzz.reports.records`) is what a run or a judgement came to, as plain
frozen or counted data. This package knows the corpus and nobody else: it shows
what it is given and decides nothing.
"""
