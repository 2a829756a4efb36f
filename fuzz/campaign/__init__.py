"""Campaigns: generate, run, judge, minimize.

`settings` has a campaign's settings, and `engine` runs it: `scheduler` decides what each worker
does, each policy is one of its `lanes`, and `shares` says what there is time for. `dispatcher`
generates tests and gives each to every executor that supports it; `family_weights` chooses the
family, `sampler` the configuration. `graph_searcher` runs a test under control: it has all
schedules searched (`schedule_search`). `cluster_validation` judges the clusters that executors
choose. A `candidate` has shown something forbidden, and `reductions` finds out what it is:
`minimizer` makes it smaller, `trial_runner` carries out experiments, and `findings` stores what is
new.

What happens is a stream of events. A `shard` is a campaign that writes them to a log, for
`litmusfuzz.fuzz.store`; `selftest` runs the mutants instead.
"""
