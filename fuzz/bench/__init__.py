"""What `litmusfuzz bench` runs: CPU times and ratios, never a test.

A figure alone says little of another machine: each comes with its ratio to
something slower that ran beside it.
"""
