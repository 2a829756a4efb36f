"""Generate, run, judge, minimize, store.

`settings` says what is asked for; `dealing` draws graphs and hands them out, `weights`
says of which families; `validation` judges the clusters that executors choose, `judge`
what they show; `reducer` makes a test smaller, `causes` tells findings apart and names files;
`loop` puts it together. Only this package knows both oracles and executors.
"""
