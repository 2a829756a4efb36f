"""Nightly runs: campaigns that run unattended, with one coordinator and many shard processes.

A nightly run consists of shards (`shard`), short campaigns, each in a shard process. A shard
writes a shard log of typed events (`shard_log`). The coordinator (`coordinator`) asks the planner
for the next shard (`planner`) and ingests the shard logs into the store (`store`). The report
builder (`report_builder`) builds the nightly report from the store.
"""
