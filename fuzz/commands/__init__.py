"""The work of commands that run no campaign, or a small one; `fuzz.cli` parses and prints.

`replay` executes a finding's file, `reproduce` makes a test of a campaign again, `minimize_file`
and `minimize_crash` make one smaller, and `known_cause` tells whether it is known. `force_all`
shows each allowed outcome, `exploration` executes each schedule. `corpus_minimization` chooses
tests of the corpus, `cluster_sources` has clusterings to validate, `explanation` explains a
forbidden outcome, and `doctor` checks the machine.

No campaign needs any of this.
"""
