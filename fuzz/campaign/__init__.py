"""Campaigns: generate, run, judge, minimize, store.

`settings` has a campaign's settings, and `loop` runs it. `dispatcher` generates tests and gives
each to every executor that supports it; `family_weights` chooses the family, `sampler` the
configuration. `judge` judges outcomes, `cluster_validation` the clusters that executors choose.
`minimizer` and `reducer` make a finding smaller, `causes` tells findings apart, `findings` stores
them. What happens is a stream of events in a `store`; `report_builder` makes reports of it.

A campaign is a sequence of shards. `coordinator` runs one in this process, or many in processes of
a pool (`pools`): `planner` decides which is next, `shard` runs it, and it writes a `shard_log` that
the store ingests. Only this package knows both oracles and executors.
"""
