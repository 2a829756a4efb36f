"""What a finding is, what it has in common with another one, and how it becomes smaller.

`judge` judges outcomes by the model that `judging_model` names. `relations` and `race_shapes` say
which ops race; `causes` and `experiments`, which consist of `trials`, say whether one finding
explains another. `finding_names` gives a finding its name, and `canonical` its key, from the
`labelling` of the test as a `coloured_graph`. `known_findings` are those that a campaign may show;
`known_file` reads them.
`reducer` with its `reduction_passes`, `normalization` and `configuration_reducer` yield smaller
candidates, which a `driver` tries. `worker_deaths` compares crashes, `chosen_clusters` puts
clusters into a test.

Nothing here starts a process or reads a clock: what has to be executed is yielded.
"""
