"""The store: the events of campaigns, and what is made of them.

`store` keeps events in the `database` of a campaign's `folder`, and ingests the `shard_log` of each
shard; `folded_events` has what they say together. `history` has the runs of a store, `pruning`
makes it smaller, and `report_builder` makes the report. Nothing here runs a test.
"""
