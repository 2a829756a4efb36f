"""Generate, run, judge, minimize, store.

`reducer` makes a test smaller, `judge` decides, `findings` tells causes apart
and names files, `loop` puts it together. Only this package knows both oracles
and executors.
"""
