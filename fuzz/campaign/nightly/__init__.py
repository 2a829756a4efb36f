"""Campaigns that run unattended: one writer, and workers that share nothing.

`shard` is a piece of work for one worker, `spool` what it leaves on the way, `plan` says
which shard is next, `store` keeps all, `night` is the writer.
"""
