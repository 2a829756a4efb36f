"""Reasons why a memory model gives no allowed set for a test."""


class NoAllowedSet(ValueError):
    """The model does not apply to the test, so no outcome is allowed or forbidden."""


class NoProgramOrder(NoAllowedSet):
    """The test has no program order, which the models ``acd`` and ``program`` require.

    Either the test has clusters, or program order adds a cycle: a member of a critical
    section stands in the file before a node that the section waits for, and both touch
    the same resource.
    """


class NotOneCluster(NoAllowedSet):
    """The model ``one_cluster`` does not apply: a graph of the test can be no cluster."""


class ValueTooLarge(NoAllowedSet):
    """Some total order makes a value that is no integer below 2**24: the test is ill-formed."""


class NoGradient(NoAllowedSet):
    """The test has a gradient that is not defined: it takes a maximum of equals, for one."""


class OpFails(NoAllowedSet):
    """Some total order makes an op fail: a division by zero, an index out of range."""


class TestTooLarge(NoAllowedSet):
    """The test unfolds into more than an oracle takes: every verdict is ``unknown``."""

    __test__ = False  # for pytest
