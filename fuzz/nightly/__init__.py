"""A campaign as a sequence of shards, in this process or in many.

`coordinator` runs them: one in this process, or many in the processes of a pool (`pools`).
`planner` decides which shard is next. `announcer` reports new findings, `live_page` serves the
report while the campaign runs.
"""
