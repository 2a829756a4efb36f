"""The store: the events of campaigns, and what is made of them.

`store` keeps events in SQLite, and ingests the `shard_log` of each shard. `history` has the runs
of a store, `pruning` makes it smaller, and `report_builder` makes the report. Nothing here runs a
test.
"""
