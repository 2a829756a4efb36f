"""Campaigns that run unattended: one writer, and workers that share nothing.

`turn` is a piece of work for one worker, `spool` what it leaves on the way, `plan` says
which turn is next, `store` keeps all, `night` is the writer.
"""
