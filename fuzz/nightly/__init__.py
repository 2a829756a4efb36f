"""A campaign as a sequence of shards, in this process or in many.

`coordinator` has what both share; `single` runs one shard in this process, `many` runs them in the
processes of a pool (`pools`). `planner` decides which shard is next, `shard_settings` has what all
of them share. `announcer` reports new findings, `live_page` serves the report while the campaign
runs.
"""
