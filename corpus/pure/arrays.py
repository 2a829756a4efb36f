"""NumPy, imported when it is first used.

Commands that evaluate no pure op start without it, in half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.int64]
    """Integers of any shape; a bool is 0 or 1."""
else:

    class _Numpy:
        """Stands for the module until an attribute is asked for."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)
            return value

    np = _Numpy()

__all__ = ["np"]
