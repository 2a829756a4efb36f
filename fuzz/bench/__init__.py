"""Benchmarks, run by `litmusfuzz bench`: times, throughputs and ratios. Tests check no time.

A time says little about another machine. Where possible, a benchmark therefore also
reports the ratio to a baseline measured in the same process.

- `oracle`: the explorer against the reference oracle, and how its time grows;
  `large` is one measurement in a process of its own, `programs` makes the tests.
- `native`: the engines and schedulers of the executor `native`, against TensorFlow.
- `clusters`: translation validation, and clusters compiled by XLA (`compiled`).
- `tensorflow`: the executor `tf`: throughput, overhead, and outcomes reached.
- `campaign`: graph runs in a second of campaigns on TensorFlow, and where the time goes; `naive` is
  the loop that it is compared with, in processes of their own.
"""
