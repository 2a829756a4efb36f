"""Executors that are wrong on purpose, one defect each.

Each stands beside the test that kills it. They show that a defect of that kind
would be found.
"""
