"""Real TensorFlow with a switch of its own thrown: a mutant that we did not write."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fuzz.executors.tensorflow.executor import TensorFlowExecutor, clustering

if TYPE_CHECKING:
    from fuzz.executors.protocol import Config


class UncheckedClusters(TensorFlowExecutor):
    """Mutant: TensorFlow makes clusters without its safety analysis.

    Killed by BLOG's problem, where it puts the write of v0 and the read of v1
    after it into one cluster. Survives MP's mirror image, S: a read before a write
    is safe in one cluster.

    References
    ----------
    BLOG, "The Problem"; semantics.md, section 5.
    """

    name: ClassVar[str] = "mutant/tf-unchecked-clusters"

    @classmethod
    def configurations(cls) -> tuple[Config, ...]:
        """One; the promise is what it breaks."""
        unchecked = "--tf_xla_disable_resource_variable_safety_checks_for_debugging"
        return (clustering("autocluster", unchecked),)
