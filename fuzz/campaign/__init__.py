"""Campaigns: generate, run, judge, minimize, store.

`settings` has a campaign's settings, and `loop` runs it. `dispatcher` generates tests and gives
each to every executor that supports it; `family_weights` chooses the family, `sampler` the
configuration. `judge` judges outcomes, `cluster_validation` the clusters that executors choose.
`minimizer` and `reducer` make a finding smaller, `causes` tells findings apart, `findings` stores
them. `nightly` runs many campaigns unattended. Only this package knows both oracles and executors.
"""
